"""Random relations for tests of relational operators, run in every way rows may be cut, and compared as bags of rows."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.timeseries.cutting import CutAtRandom

from headwater.timeseries.node import Node
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

__all__ = ["Row", "bag", "bag_of", "everywhere", "relation", "values"]

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("v", pa.int64()),
        ("d", pa.decimal128(12, 3)),
        ("t", pa.timestamp("us", "UTC")),
        ("b", pa.bool_()),
    ]
)
_START = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)


def relation(seed: int, rows: int | None = None) -> pa.Table:
    """A few rows with nulls, duplicates, NaN, both zeros and skew."""
    r = random.Random(seed)
    count = r.choice([0, 1, 2, 30, 80]) if rows is None else rows

    def maybe(value: Any) -> Any:
        return None if r.random() < 0.15 else value

    made = [
        {
            "k": maybe(r.choice(["a", "a", "a", "b", "ü", ""])),
            "n": maybe(r.randint(-2, 3)),
            "f": maybe(r.choice([0.0, -0.0, math.nan, 1.5, -2.25, math.inf, -math.inf, 1e300])),
            "v": maybe(r.choice([r.randint(-5, 5), r.randint(-(2**62), 2**62)])),
            "d": maybe(Decimal(r.randint(-2000, 2000)).scaleb(-3)),
            "t": maybe(_START + dt.timedelta(microseconds=r.randint(0, 5) * 500_001)),
            "b": maybe(r.random() < 0.5),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def values(table: pa.Table) -> Values:
    return Values(table)


def bag(table: pa.Table, digits: int | None = None) -> Counter[Any]:
    """The rows of a table, without their order."""
    return bag_of(table.to_pylist(), digits)


def bag_of(rows: Iterable[Row], digits: int | None = None) -> Counter[Any]:
    return Counter(tuple((name, _plain(value, digits)) for name, value in row.items()) for row in rows)


def _plain(value: Any, digits: int | None) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if digits is not None and math.isfinite(value) and value:
            return float(f"{value:.{digits}g}")
        return value + 0.0
    if isinstance(value, list):
        return tuple(_plain(v, digits) for v in value)
    if isinstance(value, dict):
        return tuple((k, _plain(v, digits)) for k, v in value.items())
    return value


def everywhere(node: Node, seed: int, digits: int | None = None) -> Counter[Any]:
    """What a plan gives, which has to be the same for all ways to cut its rows and places to put them."""
    first = run_here(node)
    assert first.schema.equals(node.schema), (first.schema, node.schema)
    found = bag(first, digits)
    for parts, budget in ((1, 1 << 28), (3, 1 << 28), (1, 200), (2, 200)):
        again = run_here(node, pieces=CutAtRandom(seed + parts), parts=parts, budget_bytes=budget)
        assert bag(again, digits) == found, (parts, budget)
    return found
