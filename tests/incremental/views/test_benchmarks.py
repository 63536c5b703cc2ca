"""TPC-H and Nexmark as views of a lake: all queries over the same sources, which get and lose rows; each refresh equals a recomputation."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.sql.analyzed.spoken import queries
from tests.sql.oracle import sections
from tests.sql.tpch import tables

import headwater as hw
from headwater.incremental.views import View
from headwater.incremental.views import live as lives
from headwater.lakehouse import Lake
from headwater.testing.nexmark import batches

ORDERS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
NEXMARK = {n.removeprefix("nexmark_"): text for n, (text, *_) in queries().items() if n.startswith("nexmark")}


def defined(lake: Lake, texts: Mapping[str, str]) -> list[View]:
    views = [lake.view(name, text) for name, text in texts.items()]
    for view in views:
        assert view.refresh().mode == "full"
    return views


def followed(views: list[View], *, forget: bool = False) -> None:
    for view in views:
        if forget:
            lives.forget(view._environment.root, view.name)
        report = view.refresh()
        assert report.mode == "incremental", f"{view.name}: {report}"
        assert view.verify().equal, f"{view.name}: {view.verify()}"


def of_orders(keys: list[int]) -> Iterator[tuple[str, pa.Table]]:
    for name, key in ORDERS.items():
        yield name, tables()[name].filter(pc.is_in(tables()[name][key], pa.array(keys, pa.int64())))


@pytest.mark.long
def test_tpch_follows_the_refresh_streams(tmp_path: Path) -> None:
    lake, rng = hw.connect(tmp_path), random.Random(22)
    keys = sorted(tables()["orders"]["o_orderkey"].to_pylist())
    rng.shuffle(keys)
    for name, rows in {**tables(), **dict(of_orders(keys[40:]))}.items():
        lake.write(name, rows)
    texts = sections("tpch.sql")
    assert len(texts) == 22
    views = defined(lake, texts)
    for step in range(2):
        for name, rows in of_orders(keys[20 * step : 20 * step + 20]):
            lake.table(name).append(rows)
            old = ", ".join(map(str, keys[40 + 30 * step : 70 + 30 * step]))
            lake.table(name).delete(f"{ORDERS[name]} IN ({old})")
        followed([v for v in views if set(v.sources) & set(ORDERS)], forget=step == 1)
    for view in views:
        assert view.verify().equal, view.name


@pytest.mark.long
@pytest.mark.parametrize("part", [0, 1])
def test_nexmark_follows_the_stream(part: int, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    stream = batches(3, batch_events=400)
    for name, rows in next(stream).items():
        lake.write(name, rows)
    views = defined(lake, dict(list(NEXMARK.items())[part::2]))
    for step, events in enumerate(itertools.islice(stream, 2)):
        for name, rows in events.items():
            lake.table(name).append(rows)
        lake.table("bid").delete(f"price % 17 = {step}")
        lake.table("auction").delete(f"id % 13 = {step}")
        lake.table("person").delete(f"id % 11 = {step}")
        followed(views, forget=step == 1)


def test_all_queries_are_there() -> None:
    assert sorted(NEXMARK, key=lambda n: int(n[1:])) == [f"q{n}" for n in range(23)]
