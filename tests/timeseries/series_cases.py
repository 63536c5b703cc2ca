"""Random series for tests of ordered operators: with everything that makes order hard, and run in every way it may be cut."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.running.here import run_here

ORDERING = Ordering("t", ("s",), ("seq",))
TIMES = {
    "timestamp": pa.timestamp("us"),
    "zoned": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "whole": pa.int32(),
}

Row = dict[str, Any]


def random_rows(
    seed: int, rows: int = 60, *, kind: str = "timestamp", nulls: bool = True, null_times: bool = False
) -> pa.Table:
    """Rows of a few series of unlike size, shuffled; times repeat, and `seq` decides."""
    rng = random.Random(seed)
    series: list[str | None] = ["a", "b", "ccc", *([None] if nulls else [])]
    found = []
    for seq in range(rows):
        at: Any = rng.randrange(0, 40)
        if kind in ("timestamp", "zoned"):
            zone = dt.UTC if kind == "zoned" else None
            at = dt.datetime(2026, 1, 1, tzinfo=zone) + dt.timedelta(milliseconds=250 * at)
        elif kind == "date":
            at = dt.date(2026, 1, 1) + dt.timedelta(days=at)
        found.append(
            {
                "s": rng.choices(series, [8, 3, 1, *([1] if nulls else [])])[0],
                "t": None if null_times and rng.random() < 0.08 else at,
                "seq": seq,
                "i": _maybe(rng, rng.randrange(-50, 50), nulls),
                "x": _maybe(rng, round(rng.uniform(-9, 9), 3), nulls),
                "f": _maybe(rng, rng.choice([math.nan, math.inf, -0.0, 0.0, 1e16, -1e16, 1.5, 2.25]), nulls),
                "d": _maybe(rng, Decimal(rng.randrange(-999, 999)) / 100, nulls),
                "name": _maybe(rng, rng.choice(["x", "yy", "", "z€"]), nulls),
                "tags": _maybe(rng, [rng.randrange(3)] * rng.randrange(3), nulls),
            }
        )
    rng.shuffle(found)
    schema = pa.schema(
        [
            ("s", pa.string()),
            ("t", TIMES[kind]),
            ("seq", pa.int64()),
            ("i", pa.int64()),
            ("x", pa.float64()),
            ("f", pa.float64()),
            ("d", pa.decimal128(10, 2)),
            ("name", pa.string()),
            ("tags", pa.list_(pa.int32())),
        ]
    )
    return pa.Table.from_pylist(found, schema)


def _maybe(rng: random.Random, value: Any, nulls: bool) -> Any:
    return None if nulls and rng.random() < 0.15 else value


def cutter(rng: random.Random) -> Callable[[pa.Table], Sequence[pa.Table]]:
    """Cuts a table at random places, also into empty pieces."""

    def cut(table: pa.Table) -> Sequence[pa.Table]:
        at = sorted(rng.randrange(table.num_rows + 1) for _ in range(rng.randrange(4)))
        edges = [0, *at, table.num_rows]
        return [table.slice(a, b - a) for a, b in pairwise(edges)]

    return cut


def answer(node: Node, seed: int = 0, *, by: str = "seq") -> list[Row]:
    """The rows of a plan, in the order of a column; the same bit for bit in all ways to cut them."""
    whole = run_here(node)
    expected = sorted(map(bits, whole.to_pylist()), key=repr)
    rng = random.Random(seed)
    for parts, budget in ((3, 1 << 28), (1, 700), (2, 1_500)):
        found = run_here(node, pieces=cutter(rng), parts=parts, budget_bytes=budget)
        assert found.schema == node.schema
        assert sorted(map(bits, found.to_pylist()), key=repr) == expected
    rows: list[Row] = whole.to_pylist()
    return sorted(rows, key=lambda row: row[by]) if by else rows


def bits(row: Any) -> Any:
    """A row as something that compares and prints exactly, NaN too."""
    if isinstance(row, float):
        return "nan" if math.isnan(row) else row.hex()
    if isinstance(row, dict):
        return {k: bits(v) for k, v in row.items()}
    if isinstance(row, (list, tuple)):
        return [bits(v) for v in row]
    return row


def by_series(table: pa.Table, ordering: Ordering = ORDERING) -> dict[Any, list[Row]]:
    """The rows of each series in order, by plain Python."""
    found: dict[Any, list[Row]] = {}
    for row in table.to_pylist():
        found.setdefault(tuple(row[k] for k in ordering.by), []).append(row)
    for rows in found.values():
        rows.sort(
            key=lambda r: tuple(
                (r[k] is not None, r[k] or 0) if r[k] is None else (True, r[k]) for k in _order(ordering)
            )
        )
    return found


def _order(ordering: Ordering) -> Iterable[str]:
    return (ordering.time, *ordering.tiebreak)


def assert_same(found: Sequence[Row], expected: Sequence[Row]) -> None:
    """The same rows, bit for bit."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert bits(a) == bits(b)


def assert_close(found: Sequence[Row], expected: Sequence[Row]) -> None:
    """The same rows but for the last bits of doubles, where a sum was taken in another order."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.keys() == b.keys()
        for name, value in a.items():
            if isinstance(value, float) and isinstance(b[name], float):
                assert value == pytest.approx(b[name], rel=1e-12, abs=1e-12, nan_ok=True), name
            else:
                assert bits(value) == bits(b[name]), name
