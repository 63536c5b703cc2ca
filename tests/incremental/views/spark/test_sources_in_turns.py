"""Sources whose layout changes, and views that read views, while the runtimes take turns."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from tests.incremental.views.spark.conftest import on
from tests.incremental.views.world import QUERIES, World

from headwater.incremental.views.spark.places import here
from headwater.incremental.views.view import View


def _refresh(view: View, engine: str, shards: int = 3) -> str:
    with here(), on(engine, shards):
        return view.refresh().reason


@pytest.mark.long
@pytest.mark.parametrize("mapped", [False, True])
def test_layouts_that_change(mapped: bool, tmp_path: Path) -> None:
    rng = random.Random(6)
    world = World(tmp_path, 1, mapped=mapped)
    view = world.lake.view(
        "v", "SELECT name, open, count(*) AS n, sum(amount) AS total FROM orders GROUP BY name, open"
    )
    for number, engine in enumerate(["spark", "spark", "local", "spark", "local", "spark"]):
        _refresh(view, engine)
        assert view.verify().equal, (number, engine)
        if number == 1:
            world.replace("repartition", rng)
        elif number == 2:
            world.orders.add_columns({"note": pa.string()})
            world.orders.delete("id < 3")
        elif number == 3:
            world.rewrite()
        world.commit(rng)
        world.orders.append(world.orders.to_arrow().slice(0, 2))


@pytest.mark.long
def test_a_source_that_is_made_again_is_noticed(tmp_path: Path) -> None:
    rng = random.Random(6)
    world = World(tmp_path, 1)
    view = world.lake.view("v", QUERIES["groups"])
    _refresh(view, "spark")
    world.replace("recreate", rng)
    assert "is another table than before" in _refresh(view, "spark")
    assert view.verify().equal


@pytest.mark.long
def test_views_of_views(tmp_path: Path) -> None:
    rng = random.Random(9)
    world = World(tmp_path, 2)
    below = world.lake.view("below", QUERIES["outer"])
    above = world.lake.view("above", "SELECT city, count(*) AS n, min(id) AS first FROM below GROUP BY city")
    for turn in range(5):
        _refresh(below, "spark" if turn % 2 == 0 else "local", 1 + turn)
        with here(), on("spark" if turn % 3 else "local", 2):
            done = above.refresh(cascade=False)
        assert done.mode != "full" or not turn
        assert below.verify().equal
        assert above.verify().equal
        for _ in range(2):
            world.commit(rng)
        world.orders.append(world.orders.to_arrow().slice(0, 2))


@pytest.mark.long
def test_rows_that_are_there_often(tmp_path: Path) -> None:
    world = World(tmp_path, 2)
    view = world.lake.view("v", "SELECT shop, open FROM orders")
    for number, engine in enumerate(["spark", "local", "spark", "spark", "local"]):
        _refresh(view, engine, 1 + number)
        assert view.verify().equal, number
        world.orders.append(world.orders.to_arrow())
        world.orders.delete(f"id % 5 = {number}")
