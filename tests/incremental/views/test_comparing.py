"""Comparing: floats may differ in their last digits, and nothing else may."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from headwater.base.frontier import Frontier
from headwater.incremental.views.comparing import compare

AT = Frontier(t=1)


def equal(expected: dict[str, list[object]], actual: dict[str, list[object]]) -> bool:
    one = pa.table(expected)
    return compare(AT, expected=one, actual=pa.table(actual, schema=one.schema)).equal


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e300, 1e300 * (1 + 1e-12), True),
        (1.0, 1.0000001, False),
        (math.nan, math.nan, True),
        (0.0, -0.0, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (0.0, 1e-300, False),
        (None, 0.0, False),
    ],
)
def test_floats(one: float | None, other: float | None, same: bool) -> None:
    assert equal({"k": ["a", "b"], "x": [one, 2.0]}, {"k": ["b", "a"], "x": [2.0, other]}) == same


def test_other_columns_are_exact() -> None:
    assert not equal({"k": ["a"], "x": [1.0]}, {"k": ["b"], "x": [1.0]})
    assert not equal({"k": ["a", "a"], "x": [1.0, 1.0]}, {"k": ["a"], "x": [1.0]})
    assert not equal({"n": [1]}, {"n": [2]})
    assert equal({"x": [0.1 + 0.2, 5.0], "y": [1.0, 0.7]}, {"x": [5.0, 0.3], "y": [0.7, 1.0]})


def test_what_differs_is_told() -> None:
    found = compare(
        AT, expected=pa.table({"k": [1, 2], "x": [0.3, 2.0]}), actual=pa.table({"k": [1, 2], "x": [0.1 + 0.2, 3.0]})
    )
    assert found.missing.rows.to_pylist() == [{"k": 2, "x": 2.0}]
    assert found.extra.rows.to_pylist() == [{"k": 2, "x": 3.0}]
