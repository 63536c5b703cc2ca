"""Regions say of each row whether it lies in a stretch of its series, as a look at all stretches does."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.timeseries.features.region import FIRST, LAST, Within, region_of
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

KEYS = st.tuples(st.sampled_from(["a", "b", None, ""]), st.sampled_from([1, 2, None]))
TIMES = st.one_of(st.integers(-9, 9), st.sampled_from([FIRST, LAST]))
REACH = st.sampled_from([None, 0, 1, 5])


@given(
    st.lists(st.tuples(KEYS, TIMES, TIMES), max_size=9),
    st.lists(st.tuples(KEYS, st.one_of(st.integers(-12, 12), st.none())), max_size=12),
    REACH,
    REACH,
)
def test_a_row_is_let_through_if_a_stretch_reaches_it(stretches, rows, before, after) -> None:  # type: ignore[no-untyped-def]
    stretches = [(key, min(a, b), max(a, b)) for key, a, b in stretches]

    def keyed(keys: list[tuple[str | None, int | None]]) -> dict[str, pa.Array]:
        return {"s": pa.array([k[0] for k in keys], pa.string()), "n": pa.array([k[1] for k in keys], pa.int64())}

    ends = [np.array([one[at] for one in stretches], np.int64) for at in (1, 2)]
    region = region_of(pa.table(keyed([key for key, *_ in stretches])), *ends)
    assert len(set(zip(region.owner.tolist(), region.first.tolist(), strict=True))) == region.rows
    table = pa.table({**keyed([key for key, _ in rows]), "t": pa.array([t for _, t in rows], pa.int64())})
    found = run_here(Within(Values(table), region, ("s", "n"), "t", before, after)).to_pylist()

    def wanted(key: tuple[str | None, int | None], t: int | None) -> bool:
        own = [(lo, hi) for k, lo, hi in stretches if k == key]
        if t is None:
            return bool(own)
        low = [-math.inf if before is None or lo == FIRST else lo - before for lo, _ in own]
        high = [math.inf if after is None or hi == LAST else hi + after for _, hi in own]
        return any(lo <= t <= hi for lo, hi in zip(low, high, strict=True))

    assert found == [{"s": key[0], "n": key[1], "t": t} for key, t in rows if wanted(key, t)]


def test_keys_are_compared_as_values() -> None:
    nan = float("nan")
    region = region_of(pa.table({"f": [0.0, nan]}), *map(np.array, ([0, 0], [9, 9])))
    rows = Values(pa.table({"f": pa.array([-0.0, nan, 1.0, None]), "t": [1, 1, 1, 1]}))
    assert run_here(Within(rows, region, ("f",), "t")).num_rows == 2
    narrow = Values(pa.table({"f": pa.array([0, 1], pa.int8()), "t": [1, 1]}))
    whole = region_of(pa.table({"f": [0]}), np.array([0]), np.array([9]))
    assert run_here(Within(narrow, whole, ("f",), "t")).num_rows == 1


NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**40, -(2**63), 2**63 - 1]))


@given(
    st.lists(st.tuples(NUMBERS, st.integers(-9, 9), st.integers(-9, 9)), max_size=6),
    st.lists(st.tuples(st.one_of(NUMBERS, st.none()), st.integers(-12, 12)), max_size=12),
)
def test_one_whole_number_as_key(stretches, rows) -> None:  # type: ignore[no-untyped-def]
    """Keys that lie close together are looked up in a list, others by their hash."""
    keys = pa.table({"n": pa.array([key for key, *_ in stretches], pa.int64())})
    ends = [np.array([cut(one[1:]) for one in stretches], np.int64) for cut in (min, max)]
    region = region_of(keys, *ends)
    table = pa.table(
        {"n": pa.array([key for key, _ in rows], pa.int64()), "t": pa.array([t for _, t in rows], pa.int64())}
    )
    found = run_here(Within(Values(table), region, ("n",), "t")).to_pylist()
    assert found == [
        {"n": key, "t": t} for key, t in rows if any(n == key and min(a, b) <= t <= max(a, b) for n, a, b in stretches)
    ]
