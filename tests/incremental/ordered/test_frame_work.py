"""What a change of a frame costs: as many Python calls for decimals as for integers, and none per row of the group."""

from __future__ import annotations

import random
import sys
from decimal import Decimal, localcontext
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest

from headwater.incremental.aggregates.decimals import averages, exceeds
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build
from headwater.sql.query import parse_query

_TYPES = [pa.int64(), pa.decimal128(9, 0), pa.decimal128(12, 2), pa.decimal128(20, 2), pa.decimal128(38, 10)]


def _rows(dtype: pa.DataType, size: int, seed: int) -> pa.Table:
    rng = random.Random(seed)
    places = [rng.randint(0, 9_999) for _ in range(size)]
    scale = dtype.scale if pa.types.is_decimal(dtype) else None
    keys = places if scale is None else [Decimal(p).scaleb(-scale) for p in places]
    values = [Decimal(rng.randint(-(10**33), 10**33)).scaleb(-2) for _ in places]
    return pa.table({"o": pa.array(keys, dtype), "x": places, "d": pa.array(values, pa.decimal128(34, 2))})


def _calls(dtype: pa.DataType, function: str, size: int) -> int:
    """How many Python functions a change of ten rows calls, where all frames reach back to the first row."""
    schema = _rows(dtype, 1, 0).schema
    circuit = Circuit("work")
    plan = parse_query(f"SELECT o, {function} OVER (ORDER BY o) AS w FROM t", lambda *_: schema)
    build(circuit, plan, {"t": circuit.input("t", schema)}).output("view")
    circuit.step(t=_rows(dtype, size, 1))
    circuit.step(t=_rows(dtype, 10, 2))
    count = 0

    def seen(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    change = _rows(dtype, 10, 3)
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        circuit.step(t=change)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "function", ["sum(x)", "sum(d)", "avg(d)", "max(d)", "stddev(x)", "first_value(d)", "count(*)"]
)
def test_a_change_calls_nothing_for_each_row(function: str) -> None:
    whole = _calls(pa.int64(), function, 300)
    for dtype in _TYPES:
        assert _calls(dtype, function, 3_000) < whole + 150, dtype


def test_averages_are_rounded_half_up_whatever_their_size() -> None:
    rng = random.Random(7)
    totals = [0, 1, -1, 5, -5, 10**18, -(10**18), 2**63, -(2**63), 2**64, -(2**64), 10**33 + 1, -(10**33) - 1, 2**113]
    totals += [rng.randint(-(2 ** rng.randint(1, 110)), 2 ** rng.randint(1, 110)) for _ in range(400)]
    counts = [rng.choice([1, 2, 3, 7, 8, 1000, 2**30 - 1, rng.randint(1, 10**6)]) for _ in totals]
    words = [((t >> 64), t & (2**64 - 1)) for t in totals]
    high = np.array([h for h, _ in words], dtype=np.int64)
    low = np.array([x for _, x in words], dtype=np.uint64).view(np.int64)
    upper, lower = averages(high, low, np.array(counts), 10_000)
    found = [(int(h) << 64) + (int(x) & (2**64 - 1)) for h, x in zip(upper, lower, strict=True)]
    with localcontext() as context:
        context.prec = 100
        wanted = [
            int((Decimal(t) * 10_000 / Decimal(n)).quantize(Decimal(1), rounding="ROUND_HALF_UP"))
            for t, n in zip(totals, counts, strict=True)
        ]
    assert found == wanted


def test_an_average_that_fits_no_decimal_is_the_largest_number() -> None:
    words = np.array([2**60, -(2**60)]), np.array([0, 0])
    upper, lower = averages(*words, np.array([1, 1]), 10_000)
    assert exceeds(upper, lower, 38).all()


def test_counts_that_fill_a_limb() -> None:
    count, total = 2**40 + 1, 2**100 + 12345
    words = np.array([total >> 64]), np.array([total & (2**64 - 1)], dtype=np.uint64).view(np.int64)
    upper, lower = averages(*words, np.array([count]), 10_000)
    found = (int(upper[0]) << 64) + (int(lower[0]) & (2**64 - 1))
    assert found == (2 * total * 10_000 + count) // (2 * count)
