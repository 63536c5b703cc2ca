"""Decimals of up to 38 digits against Python's whole numbers, rounded half up."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.sql.casts import cast
from headwater.sql.nodes import Column, Node, Refused, call
from headwater.sql.operators import arithmetic, compare
from headwater.sql.vectorised import Program, compile_expression, vector_of
from headwater.sql.vectorised.vector import inner

from .agreement import awkward

_FAILED = "failed"
_HUGE = 2**127
_OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_CONTEXT = Context(prec=80)


@st.composite
def _types(draw: st.DrawFn) -> pa.DataType:
    precision = draw(st.integers(1, 38) | st.sampled_from([18, 19, 38]))
    return pa.decimal128(precision, draw(st.integers(0, min(precision, 10))))


def _unscaled(dtype: pa.DataType) -> st.SearchStrategy[int]:
    most = 10**dtype.precision - 1
    return st.integers(-most, most) | st.integers(-min(most, 99), min(most, 99)) | st.sampled_from([0, most, -most])


@st.composite
def _tables(draw: st.DrawFn) -> pa.Table:
    types = draw(_types()), draw(_types())
    rows = draw(st.integers(1, 6))
    columns = []
    for dtype in types:
        values = draw(st.lists(st.none() | _unscaled(dtype), min_size=rows, max_size=rows))
        made = [None if v is None else Decimal(v).scaleb(-dtype.scale, _CONTEXT) for v in values]
        columns.append(pa.array(made, dtype))
    return pa.table(columns, names=["a", "b"])


def _exact(value: Decimal | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def _half_up(value: Fraction, scale: int) -> int:
    scaled = abs(value) * 10**scale
    whole = int(scaled + Fraction(1, 2))
    return whole if value >= 0 else -whole


def _typed(value: Fraction, dtype: pa.DataType) -> object:
    unscaled = _half_up(value, dtype.scale)
    if abs(unscaled) >= 10**dtype.precision:
        return _FAILED
    return Decimal(unscaled).scaleb(-dtype.scale, _CONTEXT)


def _row(program: Program, table: pa.Table, row: int) -> object:
    try:
        columns = [awkward(vector_of(c)) for c in table.slice(row, 1).columns]
        return program.run(columns, 1).to_arrow()[0].as_py()
    except ExpressionError:
        return _FAILED


def _rows(program: Program, table: pa.Table) -> list[object]:
    each = [_row(program, table, i) for i in range(table.num_rows)]
    try:
        whole = program.run([awkward(vector_of(c)) for c in table.columns], table.num_rows).to_arrow()
        whole.validate(full=True)
        assert whole.to_pylist() == each
    except ExpressionError as error:
        assert each.index(_FAILED) == error.row
    return each


def _column(table: pa.Table, name: str) -> Node:
    return Column(None, (name,), table.schema.field(name).type)


@pytest.mark.parametrize("op", "+-*/%")
@given(table=_tables())
def test_arithmetic(op: str, table: pa.Table) -> None:
    try:
        node = arithmetic(op, _column(table, "a"), _column(table, "b"))
    except Refused:
        return  # more than 38 digits
    program = compile_expression(node, table.schema)
    assert program.native
    for row, found in enumerate(_rows(program, table)):
        a, b = (_exact(table.column(n)[row].as_py()) for n in "ab")
        if a is None or b is None:
            assert found is None
            continue
        if op in "/%" and b == 0:
            assert found == _FAILED
            continue
        exact = a - b * int(a / b) if op == "%" else _OPERATORS[op](a, b)
        expected = _typed(exact, node.dtype)
        if found != expected:
            # Stopping is allowed where 128 bits do not hold what is between, as DuckDB stops there.
            assert found == _FAILED and (op == "*" or (op == "/" and _is_beyond(a, b, table, node.dtype.scale)))


def _is_beyond(a: Fraction, b: Fraction, table: pa.Table, scale: int) -> bool:
    left, right = (table.schema.field(n).type.scale for n in "ab")
    shift = right + scale - left
    top, bottom = abs(a) * 10**left * 10 ** max(shift, 0), abs(b) * 10**right * 10 ** max(-shift, 0)
    return bool(2 * top + bottom >= _HUGE)


@given(table=_tables(), target=_types())
def test_casts(table: pa.Table, target: pa.DataType) -> None:
    program = compile_expression(cast(_column(table, "a"), target), table.schema)
    assert program.native
    values = [_exact(v) for v in table.column("a").to_pylist()]
    assert _rows(program, table) == [None if v is None else _typed(v, target) for v in values]


@given(table=_tables())
def test_whole_parts_signs_and_order(table: pa.Table) -> None:
    column = _column(table, "a")
    values = [_exact(v) for v in table.column("a").to_pylist()]
    cut = _rows(compile_expression(cast(column, pa.int64()), table.schema), table)
    whole = [None if v is None else int(v) for v in values]
    assert cut == [_FAILED if w is not None and not -(2**63) <= w < 2**63 else w for w in whole]
    negative = compile_expression(call("minus", (column,), column.dtype), table.schema)
    assert _rows(negative, table) == [None if v is None else _typed(-v, column.dtype) for v in values]
    less = compile_expression(compare("<", column, call("minus", (column,), column.dtype)), table.schema)
    assert _rows(less, table) == [None if v is None else v < -v for v in values]


def test_wide_decimals_are_words_where_they_fit() -> None:
    small = vector_of(pa.array([Decimal(5), None], pa.decimal128(38, 0)))
    large = vector_of(pa.array([Decimal(2**63), None], pa.decimal128(38, 0)))
    assert inner(small).values.dtype == "int64" and inner(large).values.dtype == object
