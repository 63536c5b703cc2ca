"""Floats: NaN equals itself and is the greatest, zeros have no sign in comparisons and keep it elsewhere; roundings by printed digits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from .agreement import difference, differences

_EDGES = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e308, None]
_COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


@pytest.mark.long
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_comparisons_and_extremes(dtype: pa.DataType) -> None:
    edges = [
        e
        if dtype == pa.float64() or e is None
        else float(np.float32(min(max(e, -3e38), 3e38)))
        if abs(e) < math.inf
        else e
        for e in _EDGES
    ]
    pairs = list(itertools.product(edges, repeat=2))
    table = pa.table({"a": pa.array([p[0] for p in pairs], dtype), "b": pa.array([p[1] for p in pairs], dtype)})
    name = "float" if dtype == pa.float32() else "double"
    constants = [f"CAST('{c}' AS double)" if name == "double" else f"CAST({c} AS float)" for c in ("0", "-1", "1.5")]
    texts = [f"a {op} b" for op in _COMPARISONS]
    texts += [f"a {op} {c}" for op in _COMPARISONS for c in constants] + [
        f"{c} {op} a" for op in _COMPARISONS for c in constants[:1]
    ]
    texts += [
        "greatest(a, b)",
        "least(a, b)",
        "greatest(b, a, 0)",
        "a IN (b, 1)",
        "a IN (0, 1, 2, 3, 4)",
        "a + b",
        "a - b",
        "a * b",
        "-a",
        "abs(a)",
    ]
    texts += [
        "isnan(a)",
        "a BETWEEN b AND 1",
        "coalesce(a, b)",
        "nullif(a, b)",
        "if(b = 0, a, a / b)",
        "if(b = 0, a, a % b)",
        "a / b",
        "sign(a)",
        "sqrt(a)",
    ]
    found = differences(texts, table)
    assert not found, "\n".join(found)


def test_nan_as_a_constant() -> None:
    table = pa.table({"a": pa.array([1.0, math.nan, None, math.inf])})
    nan = "CAST('1' AS double) * sqrt(CAST('-1' AS double))"
    texts = (
        [f"a {op} ({nan})" for op in _COMPARISONS] + [f"({nan}) {op} a" for op in _COMPARISONS] + [f"a IN ({nan}, 1)"]
    )
    found = differences(texts, table)
    assert not found, "\n".join(found)


_NEAR_HALVES = st.tuples(st.integers(-(10**7), 10**7), st.integers(0, 6)).map(lambda t: (2 * t[0] + 1) / 2 / 10 ** t[1])
_DOUBLES = st.floats() | _NEAR_HALVES | st.decimals(-(10**6), 10**6, places=4).map(float)


@settings(max_examples=max(4, settings().max_examples // 6), phases=[Phase.generate])
@given(values=st.lists(_DOUBLES, min_size=30, max_size=30))
def test_roundings(values: list[float]) -> None:
    table = pa.table({"x": pa.array(values)})
    for text in (
        "round(x, 2)",
        "round(x)",
        "round(x, 5)",
        "rint(x)",
        "if(abs(x) < 1e15, ceil(x), 0)",
        "if(abs(x) < 1e15, floor(x), 0)",
    ):
        found = difference(text, table)
        assert found is None, found


_ONE = "exp(x) ln(x) log10(x) log2(x) sin(x) cos(x) tan(x) asin(x) acos(x) atan(x) sinh(x) cosh(x) tanh(x) sec(x) degrees(x) radians(x)"


@settings(max_examples=max(4, settings().max_examples // 6), phases=[Phase.generate])
@given(values=st.lists(st.floats() | st.floats(-20, 20) | st.floats(-1, 1), min_size=60, max_size=60))
def test_not_a_bit_differs_from_the_functions_of_c(values: list[float]) -> None:
    table = pa.table({"x": pa.array(values), "y": pa.array(values[::-1])})
    found = differences([*_ONE.split(), "pow(x, y)", "pow(x, 2)", "pow(2, x)", "cbrt(x)", "atan2(x, y)"], table)
    assert not found, "\n".join(found)
