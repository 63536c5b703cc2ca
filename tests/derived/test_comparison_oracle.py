"""Streams that are compared by digests give what a comparison of whole tables gives, whatever rows and columns there are."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.base import rowkey
from headwater.base.change import ChangeBatch
from headwater.base.frontier import Frontier
from headwater.derived import digest
from headwater.derived.comparison import Limits, compare
from headwater.derived.reports import Verification

from .whole_comparison import close, compare_whole

AT = Frontier(t=1)
CASES = int(os.environ.get("HEADWATER_TEST_EXAMPLES", "20"))
SMALL = Limits(difference_bytes=1, paired_bytes=1 << 20)
SORTED = Limits(difference_bytes=1, paired_bytes=0)

Value = Callable[[random.Random], Any]


def near(number: float, rng: random.Random) -> float:
    """A number next to this one: often equal to it but for its last digits, and often not quite."""
    return number * (1 + rng.choice([0, 0, 1e-16, -3e-16, 1e-13, 4e-10, -4e-10, 9e-10, 1.1e-9, -3e-9]))


def number(rng: random.Random) -> float:
    base = rng.choice(
        [0.0, -0.0, 1.0, -1.0, 0.1, 1e300, -1e300, 1.7e308, 2.3e-308, 5e-324, 1e-320, float("inf"), float("nan")]
    )
    return near(rng.choice([base, rng.choice([1.0, 1.5, 2.0, -7.25, 1 / 3])]), rng)


TYPES: dict[str, tuple[pa.DataType, Value]] = {
    "int": (pa.int64(), lambda r: r.randint(-2, 3)),
    "tiny": (pa.int8(), lambda r: r.randint(-2, 1)),
    "unsigned": (pa.uint64(), lambda r: r.choice([0, 1 << 63])),
    "string": (
        pa.string(),
        lambda r: r.choice(["", "a", "ab", "a long string of some length", "a long string of some lengtg", "é"]),
    ),
    "large": (pa.large_string(), lambda r: r.choice(["x", "xy"])),
    "bytes": (pa.binary(), lambda r: r.choice([b"", b"\0", b"\0\0"])),
    "fixed": (pa.binary(3), lambda r: r.choice([b"abc", b"abd"])),
    "bool": (pa.bool_(), lambda r: r.random() < 0.5),
    "date": (pa.date32(), lambda r: date(2024, 1, r.randint(1, 3))),
    "time": (pa.timestamp("us", "UTC"), lambda r: datetime(2024, 1, 1, r.randint(0, 2), tzinfo=UTC)),
    "decimal": (pa.decimal128(20, 2), lambda r: Decimal(r.randint(-2, 2)) / 100),
    "wide": (pa.decimal256(50, 2), lambda r: Decimal(r.randint(-2, 2)) / 100),
    "list": (pa.list_(pa.int32()), lambda r: [r.choice([0, 1, None]) for _ in range(r.randint(0, 2))]),
    "words": (pa.list_(pa.string()), lambda r: [r.choice(["a", "", None]) for _ in range(r.randint(0, 2))]),
    "struct": (
        pa.struct([("a", pa.int64()), ("x", pa.float64())]),
        lambda r: {"a": r.choice([1, None]), "x": r.choice([0.0, -0.0, float("nan"), None])},
    ),
    "map": (pa.map_(pa.string(), pa.int64()), lambda r: [(k, r.choice([1, None])) for k in "ab"[: r.randint(0, 2)]]),
    "nested": (
        pa.list_(pa.struct([("l", pa.list_(pa.int64()))])),
        lambda r: [{"l": [1] * r.randint(0, 2)} for _ in range(r.randint(0, 2))],
    ),
    "nothing": (pa.null(), lambda _: None),
    "double": (pa.float64(), number),
    "single": (pa.float32(), lambda r: r.choice([0.0, -0.0, 0.5, 1.1, float("nan")])),
}


def column(kind: str, length: int, rng: random.Random) -> pa.Array:
    dtype, value = TYPES[kind]
    nulls = rng.choice([0.0, 0.0, 0.2])
    return pa.array([None if rng.random() < nulls else value(rng) for _ in range(length)], dtype)


def table(rng: random.Random, floats: int) -> pa.Table:
    length = rng.choice([0, 1, 2, 5, 20, 60])
    plain = rng.sample([k for k in TYPES if k not in ("double", "single")], rng.randint(0 if floats else 1, 3))
    kinds = [*plain, *(rng.choice(["double", "double", "single"]) for _ in range(floats))]
    rng.shuffle(kinds)
    made = pa.table({f"c{i}": column(kind, length, rng) for i, kind in enumerate(kinds)})
    repeated = sorted(rng.choices(range(length), k=rng.choice([0, length]))) if length else []
    return rowkey.take_rows(made, np.array([*range(length), *repeated], dtype=np.int64))


def changed(rows: pa.Table, rng: random.Random) -> pa.Table:
    """The same rows in another order, with noise on their floats, and sometimes with other rows, columns and encodings."""
    order = list(range(rows.num_rows))
    rng.shuffle(order)
    if order and rng.random() < 0.5:
        order = order[rng.randint(0, 2) :] + rng.choices(order, k=rng.randint(0, 2))
    made = rowkey.take_rows(rows, np.array(order, dtype=np.int64))
    columns: dict[str, Any] = {}
    for name in rng.sample(made.schema.names, made.num_columns):
        values = made[name]
        if pa.types.is_float64(values.type) and rng.random() < 0.8:
            noise = [None if v is None else near(v, rng) for v in values.to_pylist()]
            values = pa.chunked_array([pa.array(noise, pa.float64())])
        elif pa.types.is_string(values.type) and rng.random() < 0.5:
            values = rng.choice(
                [values.dictionary_encode(), values.cast(pa.large_string()), values.cast(pa.string_view())]
            )
        elif len(order) and rng.random() < 0.1:
            values = rowkey.take_rows(pa.table({"v": values}), np.array(rng.choices(range(len(order)), k=len(order))))[
                "v"
            ]
        columns[name] = values
    return pa.table(columns)


def streamed(rows: pa.Table, batch_rows: int) -> Callable[[], pa.RecordBatchReader]:
    return lambda: rows.to_reader(max_chunksize=batch_rows)


def held(expected: pa.Table, actual: pa.Table, limits: Limits, rng: random.Random) -> Verification:
    sizes = [rng.choice([1, 7, 1000]) for _ in range(2)]
    return compare(
        AT,
        expected=streamed(expected, sizes[0]),
        actual=streamed(actual, sizes[1]),
        rows=rng.choice([None, 0, 100_000]),
        limits=limits,
    )


@pytest.mark.parametrize(
    "limits", [Limits(), SMALL, pytest.param(SORTED, marks=pytest.mark.long)], ids=["memory", "files", "sorted"]
)
@pytest.mark.parametrize("floats", [0, 1])
def test_the_same_rows_differ(floats: int, limits: Limits) -> None:
    for seed in range(CASES):
        rng = random.Random(f"{seed} {floats}")
        expected = table(rng, floats)
        actual = changed(expected, rng)
        missing, extra = compare_whole(expected, actual)
        found = held(expected, actual, limits, rng)
        assert found.missing == missing and found.extra == extra, f"seed {seed}: {found}"
        assert (found.missing_rows, found.extra_rows) == (missing.weights.sum(), extra.weights.sum()), f"seed {seed}"
        assert (found.expected_rows, found.rows) == (expected.num_rows, actual.num_rows)


@pytest.mark.long
@pytest.mark.parametrize("limits", [Limits(), SORTED], ids=["memory", "sorted"])
def test_with_several_floats_more_pairs_may_be_found_and_no_false_ones(limits: Limits) -> None:
    agreed = 0
    for seed in range(CASES):
        rng = random.Random(f"{seed} several")
        expected = table(rng, rng.randint(2, 3))
        actual = changed(expected, rng)
        missing, extra = compare_whole(expected, actual)
        found = held(expected, actual, limits, rng)
        agreed += found.missing == missing and found.extra == extra
        assert found.missing_rows <= missing.weights.sum() and found.extra_rows <= extra.weights.sum(), f"seed {seed}"
        left, right = taken(expected, found.missing), taken(actual, found.extra)
        assert can_be_paired(left, right.select(left.schema.names)), f"seed {seed}: {found}"
    assert agreed >= CASES * 0.9


def taken(rows: pa.Table, away: ChangeBatch) -> pa.Table:
    return away.negate().apply_to(rows)


def can_be_paired(left: pa.Table, right: pa.Table) -> bool:
    """Whether each row has a partner of its own on the other side, by trying all ways."""
    floats = [i for i, f in enumerate(left.schema) if pa.types.is_floating(f.type)]
    plain = [i for i in range(left.num_columns) if i not in floats]
    both = pa.concat_tables([left, right.cast(left.schema)])
    group = rowkey.row_codes(both.select(plain)).ids.tolist() if plain else [0] * both.num_rows
    numbers = [both.column(i).cast(pa.float64()).to_pylist() for i in floats]

    def fit(a: int, b: int) -> bool:
        pairs = [(n[a], n[b]) for n in numbers]
        return group[a] == group[b] and all(
            x is y is None or (x is not None and y is not None and close(x, y)) for x, y in pairs
        )

    partner: dict[int, int] = {}

    def place(a: int, tried: set[int]) -> bool:
        for b in range(left.num_rows, both.num_rows):
            if b not in tried and fit(a, b):
                tried.add(b)
                if b not in partner or place(partner[b], tried):
                    partner[b] = a
                    return True
        return False

    return left.num_rows == right.num_rows and all(place(a, set()) for a in range(left.num_rows))


def test_digests_agree_exactly_for_equal_rows() -> None:
    """Without floats a digest is a function of the multiset; a row more or less, or another value, is always seen."""
    for seed in range(CASES):
        rng = random.Random(f"{seed} digest")
        rows = table(rng, 0)
        other = changed(rows, rng).select(rows.schema.names)
        plain = pa.schema([pa.field(f.name, rowkey.plain_type(f.type)) for f in rows.schema])
        hashed = digest.RowHash(plain)
        one, two = digest.Digest(hashed, 2), digest.Digest(hashed, 2)
        for into, whole in ((one, rows), (two, other)):
            for batch in whole.cast(plain).to_batches(max_chunksize=rng.choice([1, 3, 100])):
                into.add(batch)
        assert one.differs(two).any() != (ChangeBatch.from_rows(rows) == ChangeBatch.from_rows(other)), f"seed {seed}"
