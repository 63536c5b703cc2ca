"""Filters that are limits of words keep the rows that the same condition keeps when it is evaluated."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.incremental.layout import Layout
from headwater.incremental.limits import limits_of
from headwater.sql import expressions

_SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("i", pa.int32()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("p", pa.decimal128(10, 2)),
        ("x", pa.float64()),
        ("s", pa.string()),
    ]
)
_SIMPLE = [
    "a > 3",
    "3 > a",
    "a >= -9223372036854775808",
    "a > 9223372036854775807",
    "a < -9223372036854775808",
    "a = 2",
    "a <> 2",
    "a BETWEEN -1 AND 4 AND i <= 2",
    "i IS NOT NULL",
    "a IS NOT NULL AND i != 0",
    "d >= DATE'1970-01-03'",
    "t < TIMESTAMP'1970-01-01 00:00:00.000003Z'",
    "p > 1.5",
]
_OTHERS = ["a > i", "x > 1.5", "s = 'x'", "a > 3 OR i = 1", "a = NULL", "a + 1 > 3", "a IN (1, 2)"]


def _rows(draw: st.DrawFn) -> dict[str, list[Any]]:
    n = draw(st.integers(0, 12))
    small = st.none() | st.integers(-4, 6)
    edges = st.none() | st.integers(-4, 6) | st.sampled_from([-(1 << 63), (1 << 63) - 1])

    def some(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    return {
        "a": some(edges),
        "i": some(small),
        "d": some(small),
        "t": some(small),
        "p": some(st.none() | st.decimals(-3, 3, places=2)),
        "x": some(st.none() | st.floats()),
        "s": some(st.sampled_from([None, "x", "y"])),
    }


@pytest.mark.parametrize("condition", _SIMPLE)
def test_they_are_recognised(condition: str) -> None:
    node = expressions.parse_condition(condition, schema=_SCHEMA).node
    assert limits_of(node, Layout(_SCHEMA)) is not None


@pytest.mark.parametrize("condition", _OTHERS)
def test_others_are_not(condition: str) -> None:
    node = expressions.parse_condition(condition, schema=_SCHEMA).node
    assert limits_of(node, Layout(_SCHEMA)) is None


@given(st.data())
def test_they_keep_what_the_condition_keeps(data: st.DataObject) -> None:
    condition = data.draw(st.sampled_from(_SIMPLE))
    columns = data.draw(st.composite(_rows)())
    table = pa.table({f.name: pa.array(columns[f.name], f.type) for f in _SCHEMA}, schema=_SCHEMA)
    circuit = hw.Circuit()
    circuit.input("t", _SCHEMA).filter(condition).output("kept")
    found = circuit.step(t=table)["kept"].to_arrow().to_pylist()
    kept = expressions.evaluate(expressions.parse_condition(condition, schema=_SCHEMA), table).to_pylist()
    expected = [r for r, k in zip(table.to_pylist(), kept, strict=True) if k]
    assert sorted(repr(r) for r in expected) == sorted(
        repr({k: v for k, v in r.items() if k != "_weight"}) for r in found for _ in range(r["_weight"])
    )
