"""Aggregates over stretches: against Python's own sums of each of them."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.timeseries.searching import first_from
from headwater.timeseries.stretches import Stretches, Unfit

VALUES = st.lists(
    st.none() | st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, 0.0]), min_size=1, max_size=40
)


def naive(function: str, values: list[float]) -> Any:
    if function == "count":
        return len(values)
    if not values:
        return None
    real = [v for v in values if not math.isnan(v)]
    if function == "min":
        return min(real) if real else math.nan
    if function == "max":
        return math.nan if len(real) < len(values) else max(values)
    if function in ("sum", "avg"):
        total = math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
        return total if function == "sum" else total / len(values)
    if function in ("var_samp", "stddev_samp") and len(values) < 2:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    if function == "var_pop":
        return statistics.pvariance(values)
    return statistics.variance(values) if function == "var_samp" else statistics.stdev(values)


@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max", "var_samp", "var_pop", "stddev_samp"])
@given(VALUES, st.data())
def test_every_stretch(function: str, values: list[float | None], data: st.DataObject) -> None:
    places = st.integers(0, len(values))
    pairs = data.draw(st.lists(st.tuples(places, places), max_size=12))
    lo, hi = (np.array([f(p) for p in pairs], np.int64) for f in (min, max))
    kind = pa.int64() if function == "count" else pa.float64()
    column = pa.chunked_array([pa.array(values, pa.float64())])
    found = Stretches(lo, hi).aggregate(function, column, kind).to_pylist()
    assert len(found) == len(pairs)
    for value, a, b in zip(found, lo, hi, strict=True):
        _same(value, naive(function, [v for v in values[a:b] if v is not None]))


@given(VALUES, st.data())
def test_stretches_that_follow_each_other(values: list[float | None], data: st.DataObject) -> None:
    edges = sorted({0, *data.draw(st.lists(st.integers(0, len(values) - 1), max_size=6))})
    lo = np.array(edges)
    hi = np.append(lo[1:], len(values))
    column = pa.chunked_array([pa.array(values, pa.float64())])
    for function in ("count", "sum", "avg", "min", "max", "stddev_samp"):
        kind = pa.int64() if function == "count" else pa.float64()
        found = Stretches(lo, hi, joined=True).aggregate(function, column, kind).to_pylist()
        for value, a, b in zip(found, lo, hi, strict=True):
            _same(value, naive(function, [v for v in values[a:b] if v is not None]))


def _same(a: Any, b: Any) -> None:
    if isinstance(b, float) and math.isnan(b):
        assert math.isnan(a)
    else:
        assert a == (b if b is None else pytest.approx(b, rel=1e-9, abs=1e-4))


def test_large_numbers_nearby_do_not_spoil_a_sum() -> None:
    column = pa.chunked_array([[1e300, 0.1, 0.2, -1e300, math.inf, 0.3]])
    found = Stretches(np.array([1, 5, 0]), np.array([3, 6, 4])).aggregate("sum", column, pa.float64())
    assert found.to_pylist()[:2] == [0.1 + 0.2, 0.3]


def test_whole_numbers_that_might_not_fit_are_given_up() -> None:
    column = pa.chunked_array([[1 << 61, 1 << 61, 1]])
    at = Stretches(np.array([0]), np.array([3]))
    assert at.aggregate("sum", column.slice(0, 3), pa.int64()).to_pylist() == [(1 << 62) + 1]
    with pytest.raises(Unfit):
        Stretches(np.array([0]), np.array([4])).aggregate("sum", pa.chunked_array([[1 << 62, 0, 0, 0]]), pa.int64())


@given(st.lists(st.lists(st.integers(-(1 << 62), 1 << 62), min_size=1, max_size=6), min_size=1, max_size=5), st.data())
def test_places_in_series(series: list[list[int]], data: st.DataObject) -> None:
    series = [sorted(times) for times in series]
    times = np.array([t for one in series for t in one])
    starts = np.cumsum([0, *(len(one) for one in series[:-1])])
    moment = st.integers(-(1 << 62), 1 << 62) | st.sampled_from(times.tolist())
    asked = data.draw(st.lists(st.tuples(st.integers(0, len(series) - 1), moment), min_size=1, max_size=10))
    which, moments = np.array([a for a, _ in asked]), np.array([m for _, m in asked])
    expected = [int(starts[s]) + sum(t < m for t in series[s]) for s, m in asked]
    assert first_from(times, starts, which, moments).tolist() == expected
