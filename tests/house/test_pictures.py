"""The pictures of the guides are drawn by the product; ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/house`` draws them anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.spark_views.curves import charts
from tests.house.test_docs_run import BLOCK

import headwater as hw
from headwater.demo.cards.stage import set_up
from headwater.incremental.planning import build
from headwater.observe.chart import Chart
from headwater.sql.query import parse_query
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running import stages
from headwater.timeseries.running.here import run_here
from headwater.timeseries.sources import sharing
from headwater.timeseries.stream import Stream

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MEASURED = Path(__file__).parents[2] / "benchmarks" / "figures" / "views_spark.json"
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"


def spend() -> hw.Circuit:
    c = hw.Circuit("spend")
    orders = c.input("orders", pa.schema([("customer", pa.int64()), ("amount", pa.int64()), ("day", pa.int64())]))
    customers = c.input("customers", pa.schema([("id", pa.int64()), ("city", pa.string())]), key="id")
    paid = orders.filter("amount > 0").join(customers, [("customer", "id")])
    paid.group_by("city").agg(orders="count(*)", total="sum(amount)", largest="max(amount)").output("by_city")
    return c


def left_join() -> hw.Circuit:
    c = hw.Circuit("left join")
    orders = c.input("orders", pa.schema([("customer", pa.int64()), ("amount", pa.int64())]))
    names = c.input("customers", pa.schema([("customer", pa.int64()), ("name", pa.string())]))
    orders.join(names, "customer", how="left").output("named")
    return c


def reachable() -> hw.Circuit:
    c = hw.Circuit("reachable")
    edge = pa.schema([("a", pa.int64()), ("b", pa.int64())])

    def longer(path: Any, edges: Any) -> Any:
        return edges.plus(path.join(edges, [("b", "a")], suffix="2").select("a", b="b2"))

    c.recursive({"path": edge}, longer, edges=c.input("edges", edge))["path"].output("path")
    return c


_LATE = """
SELECT c.city, count(*) AS late, max(o.amount) AS largest
FROM orders o JOIN customers c ON o.customer = c.id
WHERE o.amount > 100 AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.id = o.id)
GROUP BY c.city
"""


def view_of_late_orders() -> hw.Circuit:
    c = hw.Circuit("late")
    orders = c.input("orders", pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("amount", pa.int64())]))
    customers = c.input("customers", pa.schema([("id", pa.int64()), ("city", pa.string())]))
    payments = c.input("payments", pa.schema([("id", pa.int64())]))
    inputs = {"orders": orders, "customers": customers, "payments": payments}
    build(c, parse_query(_LATE, lambda name, *_: inputs[name].schema), inputs).output("late")
    return c


@pytest.mark.parametrize("drawing", [spend, left_join, reachable, view_of_late_orders], ids=lambda f: f.__name__)
def test_the_picture_is_that_of_the_circuit(drawing: Callable[[], hw.Circuit]) -> None:
    _is_drawn(drawing.__name__, drawing().graph().svg())


def _is_drawn(name: str, drawn: str) -> None:
    file = IMAGES / f"{name}.svg"
    if UPDATE:
        file.write_text(drawn)
    assert file.read_text() == drawn


@pytest.mark.parametrize("name", ["cluster_change", "cluster_state"])
def test_the_curves_are_those_that_were_measured(name: str) -> None:
    _is_drawn(name, charts(json.loads(MEASURED.read_text()))[name].svg())


class _Here(Stream):
    """A stream that is run in this process."""

    def collect(self, *, sort: bool = True) -> pa.Table:
        return run_here(self.plan)


@pytest.mark.long
def test_the_lineage_is_that_of_the_demo(tmp_path: Path) -> None:
    """The picture of the README: the demo's project, right after it was built."""
    stage = set_up(tmp_path, _no_spark)
    with stage.project as project:
        for name in ("customers", "transactions", "chargebacks", "support_notes"):
            project.lake.write(name, getattr(stage.world, name))
        assert project.refresh().ok
        _is_drawn("lineage", project.lineage().svg())


def _no_spark() -> Any:
    raise AssertionError("the picture needs no session")


@pytest.fixture(scope="module")
def market() -> dict[str, pa.Table]:
    """The tables of the guide to streams, as its first block makes them."""
    page = (IMAGES.parent / "guides" / "streams.md").read_text()
    names: dict[str, Any] = {}
    exec(next(block[2] for block in BLOCK.finditer(page) if block[1] == "python"), names)
    return {"trades": names["trade_rows"], "quotes": names["quote_rows"]}


def _features(trades: pa.Table) -> _Here:
    return (
        _Here(Values(trades))
        .ordered("ts", by="symbol", tiebreak="seq")
        .vwap("price", "size", size="10 minutes")
        .ema("price", half_life="5 minutes")
        .shift("price")
        .with_columns(move="ln(price / price_lag_1)")
        .rolling("15 minutes", volatility="stddev(move)", min_periods=20)
    )


def prices(trades: pa.Table) -> Chart:
    return _features(trades).filter("symbol = 'CORE'").plot("price", "vwap", "price_ema")


def volatility(trades: pa.Table) -> Chart:
    return _features(trades).plot("volatility")


@pytest.mark.parametrize("drawing", [prices, volatility], ids=lambda f: f.__name__)
def test_the_chart_is_that_of_the_guide(drawing: Callable[[pa.Table], Chart], market: dict[str, pa.Table]) -> None:
    _is_drawn(drawing.__name__, drawing(market["trades"]).svg())


def test_the_stages_are_those_of_the_guide(
    spark: Any, market: dict[str, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they would be of large tables: the limits are made small."""
    for name, value in (("_GIVEN_BYTES", 0), ("_SMALL_BYTES", 1), ("_SLICED_ROWS", 1_000)):
        monkeypatch.setattr(stages, name, value)
    monkeypatch.setattr(sharing, "_LEAST_BYTES", 1)
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    lake = hw.connect(tmp_path, spark=spark)
    for name, table in market.items():
        lake.write(name, table)
    trades, quotes = (lake.stream(name, time="ts", by="symbol", tiebreak="seq") for name in ("trades", "quotes"))
    priced = trades.join_asof(quotes, tolerance="10s").with_columns(spread="ask - bid")
    drawn, told = priced.graph().svg(), priced.explain()
    spark.conf.set("spark.sql.shuffle.partitions", usual)
    assert "exchange by symbol into 4, 1 hot key cut by time" in told
    _is_drawn("stages", drawn)
