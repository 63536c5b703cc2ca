"""Choosing the runtime of a refresh: a function of its rows, the pace of the view and the memory that is free."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.base import settings
from headwater.incremental.views.spark.choice import Demand, shard_count, weighed
from headwater.incremental.views.spark.places import here
from headwater.spark.machine import available_bytes

GIB = 1 << 30
LEAST = 5_000_000


@pytest.mark.parametrize(
    ("demand", "free", "engine", "reason"),
    [
        (Demand(4_999_999, follows=True), 64 * GIB, "local", "4,999,999 rows are fewer than the 5,000,000"),
        (Demand(5_000_000, follows=True), 64 * GIB, "spark", "5,000,000 rows are at least the 5,000,000"),
        # A view that is followed at twice the usual pace takes half the time, and a slow one goes to Spark sooner.
        (Demand(9_000_000, True, 600_000), 64 * GIB, "local", "at 600,000 a second count as 4,500,000, are fewer"),
        (Demand(10_000_000, True, 600_000), 64 * GIB, "spark", "at 600,000 a second count as 5,000,000, are at least"),
        (Demand(2_500_000, False, 150_000), 64 * GIB, "spark", "at 150,000 a second count as 5,000,000, are at least"),
        # One measurement does not move the threshold by more than four times.
        (Demand(1_249_999, True, 10), 64 * GIB, "local", "count as 4,999,996"),
        (Demand(20_000_000, True, 1e9), 64 * GIB, "spark", "count as 5,000,000"),
        # What does not fit is Spark's, however few rows that are.
        (
            Demand(4_200_000, follows=True),
            2 * GIB,
            "spark",
            "4,200,000 rows take about 2,050.8 MiB of memory, and 2,048.0 MiB are",
        ),
        (Demand(4_000_000, follows=True), 2 * GIB, "local", "fewer"),
        (Demand(4_000_000, follows=False), GIB // 2, "local", "fewer"),
        (
            Demand(4_400_000, follows=False),
            GIB // 2,
            "spark",
            "rows take about 537.1 MiB of memory, and 512.0 MiB are free here",
        ),
        (Demand(0, follows=True), 0, "local", "0 rows are fewer"),
    ],
)
def test_who_computes_it(demand: Demand, free: int, engine: str, reason: str) -> None:
    found = weighed(demand, least=LEAST, free_bytes=free)
    assert found.engine == engine
    assert reason in found.reason


def test_few_changes_are_not_divided() -> None:
    assert shard_count(250_000, 8, follows=True) == 1
    assert shard_count(250_001, 8, follows=True) == 8
    assert shard_count(1, 8, follows=False) == 8
    assert shard_count(6_000_000, 8, follows=True) == 16
    with settings.override(view_spark_shards=3):
        assert shard_count(1, 8, follows=True) == 3


def test_plan_says_that_memory_decided(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"k": i} for i in range(1_000)])
    view = lake.view("v", "SELECT k, count(*) AS n FROM t GROUP BY k")
    with here():
        assert view.plan().engine == "local"
        with settings.override(memory_limit_bytes=100_000):
            plan = view.plan()
            assert plan.engine == "spark"
            assert "1,000 rows take about 0.1 MiB of memory" in plan.engine_reason
            assert "on Spark, since 1,000 rows take about" in view.refresh().reason


def test_memory_that_is_available(tmp_path: Path) -> None:
    memory, group = tmp_path / "meminfo", tmp_path / "cgroup"
    group.mkdir()
    memory.write_text("MemTotal:       2048 kB\nMemFree: 12 kB\nMemAvailable:    1024 kB\n")
    assert available_bytes(group, memory) == 1 << 20
    (group / "memory.max").write_text("4096\n")
    assert available_bytes(group, memory) == 4_096
    assert available_bytes(group, tmp_path / "none") == 4_096
