"""Splits that Spark's tasks build: the same answers as those built here, and nothing left over."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.search.spark.notes import QUERIES, notes

import headwater as hw
from headwater.base import settings
from headwater.base.errors import CorruptionError, HeadwaterError
from headwater.lakehouse import Lake
from headwater.testing import assert_same_rows
from headwater.testing.s3_server import S3Server


def fill(lake: Lake, files: int = 6, rows: int = 400) -> None:
    """A table of several files, of which some have rows that are deleted."""
    table = lake.write("notes", notes(rows, seed=0))
    for seed in range(1, files):
        table.append(notes(rows, seed=seed))
    table.delete("id % 17 = 3")


def answers(lake: Lake, index: str) -> list[object]:
    ix = lake.index(index)
    found: list[object] = []
    for query in QUERIES:
        result = ix.search(query, k=25, columns=["id"])
        found.append((result.total, [round(score, 4) for score in result.scores]))
        found.append(sorted(row["id"] for row in ix.search(query, k=None, columns=["id"])))
    return found


def test_splits_of_tasks_answer_like_those_built_here(spark: SparkSession, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    fill(lake)
    here = lake.index("here", "notes", text=["title", "body"], numeric="amount", keyword="author", refresh=True)
    made = lake.index(
        "made", "notes", text=["title", "body"], numeric="amount", keyword="author", target_rows=900, hot=["id"]
    )
    assert made.plan().engine == "local"  # type: ignore[attr-defined]
    with settings.override(search_spark_rows=1):
        assert "spark" in str(made.plan())
        report = made.refresh()
    assert (report.mode, report.rows_out) == ("full", 6 * 400)
    assert made.details().splits == 3 and made.coverage == 1.0
    assert {len(made.store.cover(name).files) for name in made.record.names} == {2}
    assert made.verify().equal
    assert answers(lake, "made") == answers(lake, "here")
    assert_same_rows(made.read(), here.read())
    assert not made.store.orphans(made.record.names)

    lake.table("notes").append(notes(300, seed=99))
    lake.table("notes").update({"body": "'corrected refund'"}, where="id % 100 = 5")
    for one in (here, made):
        with settings.override(search_spark_rows=1 if one is made else 10**9):
            assert one.refresh().mode == "incremental"
    assert made.verify().equal
    assert answers(lake, "made") == answers(lake, "here")


def test_an_error_of_a_task_is_the_error_that_it_is(spark: SparkSession, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    fill(lake, files=2)
    victim = next(iter((tmp_path / "notes").glob("*.parquet")))
    good = victim.read_bytes()
    victim.write_bytes(good[: len(good) // 2])
    made = lake.index("made", "notes", text="body")
    with settings.override(search_spark_rows=1), pytest.raises(HeadwaterError) as raised:
        made.refresh()
    assert isinstance(raised.value, CorruptionError)
    victim.write_bytes(good)
    with settings.override(search_spark_rows=1):
        made.refresh()
    assert made.verify().equal
    assert not made.store.orphans(made.record.names), "what the other task had written is gone"


@pytest.mark.s3
def test_splits_reach_the_bucket(spark: SparkSession, s3: S3Server) -> None:
    lake = hw.connect(s3.url("search_spark"), s3.options, spark=spark)
    fill(lake, files=3)
    made = lake.index("made", "notes", text="body", target_rows=400)
    with settings.override(search_spark_rows=1):
        made.refresh()
    assert made.details().splits == 3 and made.verify().equal
