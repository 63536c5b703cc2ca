"""Tables to serve, and servers that serve them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.serving.server.publishing import publish, store_at
from tests.serving.server.running import RunningServer, serving

from headwater.base.frontier import Frontier

NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


def all_types() -> pa.Table:
    """A row of every type, one of nulls, and one of odd values, by a string."""
    return pa.table(
        {
            "id": pa.array(["a", "b", "c"]),
            "text": pa.array(["häß", None, ""]),
            "raw": pa.array([b"\x00\xff", None, b""], pa.binary()),
            "flag": pa.array([True, None, False]),
            "i8": pa.array([-8, None, 127], pa.int8()),
            "u64": pa.array([2**64 - 1, None, 0], pa.uint64()),
            "i64": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
            "f16": pa.array([1.5, None, float("nan")], pa.float16()),
            "f32": pa.array([0.1, None, float("inf")], pa.float32()),
            "f64": pa.array([0.1, None, float("-inf")], pa.float64()),
            "amount": pa.array([Decimal("12.30"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
            "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]),
            "at": pa.array([NOW, None, NOW], pa.timestamp("us", "UTC")),
            "plain_at": pa.array([dt.datetime(2024, 1, 1), None, None], pa.timestamp("ms")),
            "vector": pa.array([[0.5, 1.5], None, []], pa.list_(pa.float32())),
        }
    )


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with online tables: by string, number, date, several columns; all types; two that share a source."""
    folder = tmp_path_factory.mktemp("tables")
    many = pa.table(
        {"id": pa.array(range(1000)), "x": pa.array([n / 4 for n in range(1000)]), "y": pa.array(range(1000))}
    )
    publish(store_at(folder, "numbers"), many, ["id"])
    publish(store_at(folder, "types"), all_types(), ["id"], Frontier(raw=3, cards=5))
    days = pa.table({"day": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]), "n": pa.array([1, 2])})
    publish(store_at(folder, "days"), days, ["day"])
    pairs = pa.table({"a": pa.array(["x", "x", "y"]), "b": pa.array([1, 2, 1]), "n": pa.array([1.0, 2.0, None])})
    publish(store_at(folder, "pairs"), pairs, ["a", "b"])
    old = pa.table(
        {"id": pa.array([1, 2]), "x": pa.array([1.0, 2.0]), "seen": pa.array([NOW, None], pa.timestamp("ms", "UTC"))}
    )
    publish(store_at(folder, "aged"), old, ["id"], ttl_ms=1000, event_time="seen")
    spend = pa.table({"customer": pa.array(["ada", "bob"]), "total": pa.array([10.0, 5.0])})
    risk = pa.table({"customer": pa.array(["bob", "eve"]), "score": pa.array([1, 2])})
    publish(store_at(folder, "spend"), spend, ["customer"], Frontier(orders=7))
    publish(store_at(folder, "risk"), risk, ["customer"], Frontier(orders=7, cards=2))
    return folder


@pytest.fixture(scope="session")
def server(tables: Path) -> Iterator[RunningServer]:
    """A server with one worker."""
    with serving(tables) as running:
        yield running


@pytest.fixture(scope="session")
def slow_server(tables: Path) -> Iterator[RunningServer]:
    """The same, with everything answered by the application."""
    with serving(tables, fast_path=False) as running:
        yield running
