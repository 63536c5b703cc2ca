"""State and tables in object storage: tasks fetch runs and put new ones, another machine goes on, and nothing is left but what is named."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.incremental.views.spark.conftest import on
from tests.incremental.views.world import QUERIES, World

import headwater as hw
from headwater.base import settings
from headwater.incremental.views import live as lives
from headwater.incremental.views.spark.places import here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.testing.s3_server import S3Server


@pytest.mark.long
def test_machines_and_runtimes_take_turns(s3: S3Server, spark: SparkSession, tmp_path: Path) -> None:

    rng = random.Random(3)
    url = s3.url("lake")
    world = World(url, options=s3.options)
    lake = hw.connect(url, storage_options=s3.options, spark=spark)
    view = lake.view("v", QUERIES["groups"])
    root = view._environment.root
    for turn, engine in enumerate(["spark", "local", "spark", "spark"]):
        with settings.override(spill_dir=tmp_path / f"machine{turn % 2}"), on(engine):
            lives.forget(root, "v")  # another machine has nothing in memory
            done = view.refresh()
            assert ("on Spark" in done.reason) == (engine == "spark")
            assert view.verify().equal
        world.commit(rng)
        world.orders.append(world.orders.to_arrow().slice(0, 2))
    left = [e.path for e in root.list("_headwater/views/v/spark")]
    assert not left, "what parts left for later ones goes with the refresh"
    with settings.override(spill_dir=tmp_path / "third"), on("local"):
        lives.forget(root, "v")
        assert view.refresh().mode == "incremental"
        assert view.verify().equal


@pytest.mark.parametrize("rows", [40, 3_000])
def test_jobs_leave_rows_for_later_ones(rows: int, s3: S3Server) -> None:
    """A join before a group: the second job reads what the first one left in object storage."""
    lake = hw.connect(s3.url("lake"), storage_options=s3.options)
    lake.write("shops", [{"shop": n, "city": f"city {n % 3}"} for n in range(20)])
    orders = lake.write("orders", [{"id": n, "shop": n % 20} for n in range(rows)])
    counted = "SELECT city, count(*) AS n FROM orders o JOIN shops s ON o.shop = s.shop GROUP BY city"
    view = lake.view("v", counted)
    for _ in range(2):
        with here(), on("spark", 2):
            assert "on Spark" in view.refresh().reason
        assert view.jobs().num_rows == 2
        assert view.verify().equal
        orders.append([{"id": rows + n, "shop": n % 20} for n in range(rows)])
