"""Whole numbers of every width against Python's, which do not overflow."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.sql.nodes import Column, Literal, Node, call
from headwater.sql.vectorised import Program, compile_expression, vector_of
from headwater.sql.vectorised.integers import BOUNDS, remainder

from .agreement import awkward

_TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


def _cut(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": lambda a, b: a - b * _cut(a, b),
    "div": _cut,
}


def _expected(op: str, a: int | None, b: int | None, dtype: pa.DataType) -> int | str | None:
    if a is None or b is None:
        return None
    if op in ("%", "div") and b == 0:
        return "failed"
    found = _OPERATORS[op](a, b)
    low, high = BOUNDS[dtype]
    return found if low <= found <= high else "failed"


def _row(program: Program, columns: list[pa.Array], row: int) -> object:
    try:
        return program.run([awkward(vector_of(c.slice(row, 1))) for c in columns], 1).to_arrow()[0].as_py()
    except ExpressionError as error:
        assert error.row == 0
        return "failed"


def _whole(dtype: pa.DataType) -> st.SearchStrategy[int]:
    low, high = BOUNDS[dtype]
    near = st.sampled_from([low, low + 1, high, high - 1, -1, 0, 1, 2, -2, 1 << (dtype.bit_width // 2)])
    return near | st.integers(-20, 20) | st.integers(low, high)


@st.composite
def _columns(draw: st.DrawFn) -> tuple[pa.DataType, list[int | None], list[int | None]]:
    dtype = draw(st.sampled_from(_TYPES))
    pairs = draw(st.lists(st.tuples(st.none() | _whole(dtype), st.none() | _whole(dtype)), min_size=1, max_size=12))
    return dtype, [p[0] for p in pairs], [p[1] for p in pairs]


@pytest.mark.parametrize("op", _OPERATORS)
@given(drawn=_columns(), shape=st.sampled_from(["columns", "constant right", "constant left"]))
def test_as_python_counts(op: str, drawn: tuple[pa.DataType, list[int | None], list[int | None]], shape: str) -> None:
    dtype, left, right = drawn
    if op == "div":
        dtype = pa.int64()
    a: Node = Column(None, ("a",), dtype)
    b: Node = Column(None, ("b",), dtype)
    if shape == "constant right":
        b, right = Literal(right[0], dtype), right[:1] * len(left)
    elif shape == "constant left":
        a, left = Literal(left[0], dtype), left[:1] * len(right)
    schema = pa.schema([("a", dtype), ("b", dtype)])
    program = compile_expression(call(op, (a, b), dtype, fallible=True), schema)
    assert program.native
    expected = [_expected(op, x, y, dtype) for x, y in zip(left, right, strict=True)]
    columns = [pa.array(left, dtype), pa.array(right, dtype)]
    try:
        found = program.run([awkward(vector_of(c)) for c in columns], len(left)).to_arrow().to_pylist()
        assert found == expected
    except ExpressionError as error:
        assert error.row == expected.index("failed")
    assert [_row(program, columns, i) for i in range(len(left))] == expected


@pytest.mark.parametrize("dtype", _TYPES)
@given(data=st.data())
def test_minus_and_abs(dtype: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | _whole(dtype), min_size=1, max_size=8))
    column = Column(None, ("a",), dtype)
    least = BOUNDS[dtype][0]
    for op, body in (("minus", operator.neg), ("abs", abs)):
        program = compile_expression(call(op, (column,), dtype, fallible=True), pa.schema([("a", dtype)]))
        expected = [None if v is None else "failed" if v == least else body(v) for v in values]
        assert [_row(program, [pa.array(values, dtype)], i) for i in range(len(values))] == expected


@given(values=st.lists(_whole(pa.int64()), min_size=1), divisor=_whole(pa.int64()).filter(bool))
def test_remainders_of_many_rows_are_those_of_few(values: list[int], divisor: int) -> None:
    import numpy as np

    many = np.array(values * (5000 // len(values) + 1))
    with np.errstate(all="ignore"):
        found = remainder(many, np.int64(divisor))
    assert found[: len(values)].tolist() == [v - divisor * _cut(v, divisor) for v in values]
