"""Rows that nothing puts in order are refused where they differ, and only there."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.timeseries.series_cases import bits

from headwater.base.errors import InputError
from headwater.timeseries.node import Ordering
from headwater.timeseries.rows import sort_table
from headwater.timeseries.total_order import check_total, checked, unequal_pairs

BY_TIME = Ordering("t", ("s",))


def test_equal_rows_at_one_time_are_harmless() -> None:
    table = pa.table({"s": ["a", "a"], "t": [1, 1], "v": [float("nan"), float("nan")], "z": [0.0, -0.0]})
    check_total(table, BY_TIME)


def test_the_series_and_the_time_are_named() -> None:
    table = pa.table({"s": ["a", "b", "b"], "t": [dt.date(2026, 1, 1)] * 3, "v": [1, 2, 3]})
    with pytest.raises(InputError, match=r"two rows at 2026-01-01 differ in `v`(?s:.*)where: s = 'b'(?s:.*)tiebreak"):
        check_total(table, BY_TIME)


def test_a_tiebreak_decides() -> None:
    table = pa.table({"s": ["a", "a"], "t": [1, 1], "n": [1, 2], "v": [1, 2]})
    check_total(table, Ordering("t", ("s",), ("n",)))


def test_rows_without_a_time_are_at_one_time() -> None:
    table = pa.table({"s": ["a", "a"], "t": pa.array([None, None], pa.int32()), "v": [1, 2]})
    with pytest.raises(InputError, match="two rows at None"):
        check_total(table, BY_TIME)


def test_a_tie_across_chunks_is_found() -> None:
    chunks = [pa.table({"s": ["a"], "t": [1], "v": [1]}), pa.table({"s": ["a"], "t": [1], "v": [2]})]
    with pytest.raises(InputError):
        list(checked(chunks, BY_TIME))
    assert len(list(checked(chunks, BY_TIME, []))) == 2


VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int16(), [1, 2, None]),
    (pa.float32(), [1.5, float("nan"), None, 0.0]),
    (pa.string(), ["", "a", None]),
    (pa.binary(), [b"", b"a", None]),
    (pa.decimal128(5, 2), [None, 1, 2]),
    (pa.bool_(), [None, True, False]),
    (pa.timestamp("us", "UTC"), [None, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
    (pa.list_(pa.int32()), [None, [], [1], [1, None], [None, 1], [2]]),
    (pa.large_list(pa.string()), [None, [], ["a"], ["a", None]]),
    (pa.list_(pa.float64(), 2), [None, [1.0, 2.0], [1.0, None], [float("nan"), 2.0]]),
    (pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int8()))]), [None, {"a": 1, "b": []}, {"a": 1, "b": None}]),
    (pa.map_(pa.string(), pa.int32()), [None, [], [("k", 1)], [("k", None)], [("l", 1)]]),
    (pa.list_(pa.struct([("x", pa.float64())])), [None, [], [{"x": 1.0}], [{"x": None}], [None]]),
    (pa.null(), [None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda v: str(v) if isinstance(v, pa.DataType) else "")
def test_pairs_of_every_type(kind: pa.DataType, values: list[Any]) -> None:
    rng = random.Random(str(kind))
    picked = [rng.choice(values) for _ in range(40)]
    column = pa.chunked_array([pa.array(picked[:13], kind).slice(2), pa.array(picked[13:], kind)])
    plain = column.to_pylist()
    left = np.array([rng.randrange(len(plain)) for _ in range(60)])
    right = np.array([rng.randrange(len(plain)) for _ in range(60)])
    expected = [bits(plain[a]) != bits(plain[b]) for a, b in zip(left, right, strict=True)]
    assert unequal_pairs(column, left, right).tolist() == expected
    one = pa.array(["?", *picked][1:], kind)
    assert unequal_pairs(one.slice(3), left % 30, right % 30).tolist() == [
        bits(one[3 + a % 30].as_py()) != bits(one[3 + b % 30].as_py()) for a, b in zip(left, right, strict=True)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_a_loop_finds(seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        {"s": rng.choice([None, "a"]), "t": rng.choice([None, *range(12)]), "v": rng.choice([None, 1])}
        for _ in range(6)
    ]
    table = sort_table(
        pa.Table.from_pylist(rows, pa.schema([("s", pa.string()), ("t", pa.int64()), ("v", pa.int8())])), ["s", "t"]
    )
    differs = any(a["s"] == b["s"] and a["t"] == b["t"] and a["v"] != b["v"] for a in rows for b in rows)
    if differs:
        with pytest.raises(InputError):
            check_total(table, BY_TIME)
    else:
        check_total(table, BY_TIME)
