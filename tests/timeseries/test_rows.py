"""Sorting in bounded memory, against Python's own sort."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom

from headwater.timeseries.rows import Rows, key_starts, whole_keys

_KINDS = [
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.timestamp("us", "UTC"),
    pa.date32(),
    pa.decimal128(30, 2),
    pa.bool_(),
    pa.binary(),
]


def _values(rng: random.Random, kind: pa.DataType, rows: int) -> pa.Array:
    numbers = [rng.choice([None, rng.randint(-3, 3)]) for _ in range(rows)]
    if pa.types.is_floating(kind):
        return pa.array([rng.choice([n, math.nan, -0.0, math.inf]) for n in numbers], kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([None if n is None else "ü" * (n + 3) + str(n) for n in numbers], pa.string()).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([None if n is None else n > 0 for n in numbers], kind)
    if pa.types.is_date(kind):
        return pa.array(numbers, pa.int32()).cast(kind)
    return pa.array(numbers, pa.int64()).cast(kind)


def _rank(value: Any) -> Any:
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    return (1, value)


@pytest.mark.parametrize("seed", range(30))
def test_sorted_as_python_sorts(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [rng.choice(_KINDS) for _ in range(rng.randint(1, 3))]
    rows = rng.choice([0, 1, 5, 200])
    table = pa.table(
        {
            **{f"c{i}": _values(rng, kind, rows) for i, kind in enumerate(kinds)},
            "place": pa.array(range(rows), pa.int64()),
        }
    )
    by = [f"c{i}" for i in range(len(kinds))]
    wanted = sorted(table.to_pylist(), key=lambda row: tuple(_rank(row[c]) for c in by))
    for budget in (1 << 20, 700):
        pieces = CutAtRandom(seed)(table)
        given = Rows(pieces, table.schema, budget_bytes=budget)
        chunks = list(given.sorted(by))
        found = pa.concat_tables([table.schema.empty_table(), *chunks])
        assert [r["place"] for r in found.to_pylist()] == [r["place"] for r in wanted]
        if budget == 700 and rows == 200:
            assert given.spilled_bytes > 0
            assert len(chunks) > 1
        starts = key_starts(found, by)
        again = [
            i
            for i, row in enumerate(wanted)
            if i == 0 or [_rank(row[c]) for c in by] != [_rank(wanted[i - 1][c]) for c in by]
        ]
        assert starts.tolist() == again
        whole = list(whole_keys(chunks, by[:1]))
        assert pa.concat_tables([table.schema.empty_table(), *whole])["place"].equals(found["place"])
        edges = [
            len(key_starts(pa.concat_tables([a.slice(a.num_rows - 1), b.slice(0, 1)]), by[:1]))
            for a, b in pairwise(whole)
        ]
        assert all(edge == 2 for edge in edges)


def test_what_fits_is_given_whole() -> None:
    table = pa.table({"a": list(range(100))})
    assert Rows([table, table], table.schema).fitting() == pa.concat_tables([table, table])
    large = Rows([table, table], table.schema, budget_bytes=1_000)
    assert large.fitting() is None
    assert large.whole().num_rows == 200
