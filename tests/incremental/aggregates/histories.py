"""Histories of rows that come and go, and an oracle that computes everything again after every step."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from headwater.incremental.aggregates.aggregation import Aggregation
from headwater.incremental.layout import Layout
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet

Row = dict[str, Any]
Oracle = Callable[[list[Row]], Any]

SCHEMA = pa.schema(
    [
        pa.field("g", pa.int64()),
        pa.field("h", pa.string()),
        pa.field("k", pa.float64()),
        pa.field("v", pa.int64()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("i", pa.int8()),
        pa.field("d", pa.float64()),
        pa.field("f", pa.float32()),
        pa.field("p", pa.decimal128(10, 2)),
        pa.field("q", pa.decimal128(30, 4)),
        pa.field("s", pa.string()),
        pa.field("b", pa.bool_()),
        pa.field("w", pa.bool_()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("e", pa.date32()),
    ]
)

DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, -0.1, 1e16, -1e16, 1.0, 5e-324, -5e-324, 1.7e308, 1e-300, 2.0**-1022]),
    st.floats(allow_nan=False, allow_infinity=False, width=64),
    st.floats(-1e6, 1e6),
)
SPECIAL_DOUBLES = st.one_of(DOUBLES, st.sampled_from([math.inf, -math.inf, math.nan]))
LONGS = st.one_of(st.integers(-9, 9), st.integers(-(1 << 60), 1 << 60))
TEXTS = st.sampled_from(["", "a", "b", "ab", "abcdefghijkl", "abcdefghijklm", "abcdefghijklmnopqrstuvwxyz", "zz", "é"])


def rows(**changed: st.SearchStrategy[Any]) -> st.SearchStrategy[Row]:
    """Rows of SCHEMA; columns may be drawn from other strategies."""
    columns: dict[str, st.SearchStrategy[Any]] = {
        "g": st.one_of(st.none(), st.integers(0, 2)),
        "h": st.one_of(st.none(), TEXTS),
        "k": st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, math.nan])),
        "v": st.one_of(st.none(), LONGS),
        "n": st.integers(-5, 5),
        "i": st.one_of(st.none(), st.integers(-128, 127)),
        "d": st.one_of(st.none(), DOUBLES),
        "f": st.one_of(st.none(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
        "p": st.one_of(st.none(), st.integers(-(10**10) + 1, 10**10 - 1).map(lambda x: Decimal(x).scaleb(-2))),
        "q": st.one_of(st.none(), st.integers(-(10**30) + 1, 10**30 - 1).map(_scaled)),
        "s": st.one_of(st.none(), TEXTS),
        "b": st.one_of(st.none(), st.booleans()),
        "w": st.one_of(st.none(), st.booleans()),
        "t": st.one_of(
            st.none(), st.integers(0, 5).map(lambda x: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=x))
        ),
        "e": st.one_of(st.none(), st.integers(0, 9).map(lambda x: date(2020, 1, 1 + x))),
        **changed,
    }
    return st.fixed_dictionaries(columns)


def _scaled(x: int) -> Decimal:
    text = f"{abs(x):05d}"
    return Decimal(f"{'-' if x < 0 else ''}{text[:-4]}.{text[-4:]}")


def histories(row: st.SearchStrategy[Row], steps: int = 6, size: int = 8) -> st.SearchStrategy[list[list[Any]]]:
    """Steps of insertions, deletions, updates and clearings."""
    change = st.one_of(
        st.tuples(st.just("insert"), row, st.integers(1, 3)),
        st.tuples(st.just("insert"), row, st.just(1)),
        st.tuples(st.just("delete"), st.integers(0, 100)),
        st.tuples(st.just("update"), st.integers(0, 100), row),
        st.tuples(st.just("clear"), st.integers(0, 100)),
    )
    return st.lists(st.lists(change, max_size=size), min_size=1, max_size=steps)


class Source(Node):
    """Gives what it is given."""

    kind: ClassVar[Kind] = "source"

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__([], Layout(schema), label="source")

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return deltas[0]


def comparable(value: Any) -> Any:
    """Something that is equal iff the values are the same, bit for bit; all NaNs are one."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", math.nan if math.isnan(value) else value))
    if isinstance(value, list):
        return tuple(comparable(v) for v in value)
    if isinstance(value, Decimal):
        return ("decimal", value.as_tuple())
    return value


def zset_of(layout: Layout, changes: Sequence[tuple[Row, int]]) -> ZSet:
    table = pa.Table.from_pylist([r for r, _ in changes], schema=layout.schema)
    return ZSet.packed(layout, table, np.array([w for _, w in changes], dtype=np.int64))


def apply_changes(live: list[Row], changes: Sequence[Any], keys: Sequence[str]) -> list[tuple[Row, int]]:
    """Apply a step of a history to the rows that are there, and give the change."""
    delta: list[tuple[Row, int]] = []
    for what, *rest in changes:
        if what == "insert":
            row, times = rest
            live.extend([row] * times)
            delta.append((row, times))
            continue
        if not live:
            continue
        at = rest[0] % len(live)
        if what == "clear":
            group = key_of(live[at], keys)
            gone = [r for r in live if key_of(r, keys) == group]
            live[:] = [r for r in live if key_of(r, keys) != group]
            delta.extend((r, -1) for r in gone)
            continue
        delta.append((live.pop(at), -1))
        if what == "update":
            live.append(rest[1])
            delta.append((rest[1], 1))
    return delta


def key_of(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    """The key of a row, with one zero and one NaN."""
    found = []
    for k in keys:
        x = row[k]
        if isinstance(x, float):
            x = math.nan if math.isnan(x) else x + 0.0
        found.append(comparable(x))
    return tuple(found)


class Checked:
    """An aggregate whose output is compared with the oracle after every step."""

    def __init__(
        self,
        keys: Sequence[str],
        aggregations: Sequence[Aggregation],
        oracles: Mapping[str, Oracle],
        schema: pa.Schema = SCHEMA,
    ) -> None:
        self.source = Source(schema)
        self.keys = list(keys)
        self.node = Aggregate(self.source, keys, aggregations)
        self.oracles = oracles
        self.live: list[Row] = []
        self.out: Counter[tuple[Any, ...]] = Counter()
        self.random = random.Random(7)

    def expected(self) -> set[tuple[Any, ...]]:
        groups: dict[tuple[Any, ...], list[Row]] = {} if self.keys else {(): []}
        for r in self.live:
            groups.setdefault(key_of(r, self.keys), []).append(r)
        return {(*key, *(comparable(oracle(some)) for oracle in self.oracles.values())) for key, some in groups.items()}

    def step(self, changes: Sequence[Any]) -> None:
        delta = apply_changes(self.live, changes, self.keys)
        self.random.shuffle(delta)
        given = zset_of(self.source.layout, delta)
        if not len(given) and not self.node.restless:
            return
        if self.random.random() < 0.3:  # a step that fails elsewhere leaves nothing behind
            self.node.step([given])
            self.node.rollback()
        out = self.node.step([given])
        for row in out.to_arrow().to_pylist():
            weight = row.pop("_weight")
            self.out[tuple(comparable(x) for x in row.values())] += weight
        self.node.commit()
        self.out = Counter({k: w for k, w in self.out.items() if w})
        assert set(self.out.values()) <= {1}, "the integral of the output is a set"
        found, expected = set(self.out), self.expected()
        assert found == expected, f"too much: {found - expected}; missing: {expected - found}"


def check(
    history: Sequence[Sequence[Any]],
    aggregations: Mapping[str, tuple[Aggregation, Oracle]],
    keys: Sequence[str] = ("g",),
) -> Checked:
    """Run a history against the oracle."""
    checked = Checked(keys, [a for a, _ in aggregations.values()], {n: o for n, (_, o) in aggregations.items()})
    for changes in history:
        checked.step(changes)
    return checked


def values(some: Sequence[Row], column: str) -> list[Any]:
    """The values of a column that are not null."""
    return [r[column] for r in some if r[column] is not None]


def fsum(numbers: Sequence[float]) -> float:
    """The true sum, rounded once; infinite where it is too large."""
    if any(math.isnan(x) for x in numbers) or (math.inf in numbers and -math.inf in numbers):
        return math.nan
    if math.inf in numbers:
        return math.inf
    if -math.inf in numbers:
        return -math.inf
    total = sum(map(Fraction, numbers), Fraction(0))
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return math.inf if total > 0 else -math.inf
