"""Expressions that nobody thought of: generated trees over generated rows, against Spark.

What is refused is left out (refusing is allowed), but most of what is generated has to be accepted, or the test would be empty.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import parse

Differences = Callable[[pa.Table, Sequence[str]], list[str]]
Text = st.SearchStrategy[str]

_SCHEMA = pa.schema(
    [
        ("i8", pa.int8()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("p", pa.decimal128(9, 2)),
        ("q", pa.decimal128(5, 3)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
    ]
)
_COLUMNS = {"int": ["i8", "i", "l"], "float": ["f", "d"], "decimal": ["p", "q"]}


def _whole(bits: int) -> st.SearchStrategy[int]:
    edge = 2 ** (bits - 1)
    return st.integers(-9, 9) | st.integers(-edge, edge - 1) | st.sampled_from([-edge, edge - 1])


def _number(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return (st.integers(-most, most) | st.integers(-99, 99)).map(lambda n: Decimal(n).scaleb(-scale))


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i8": _whole(8),
    "i": _whole(32),
    "l": _whole(64),
    "f": st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.5]),
    "d": st.floats() | st.sampled_from([0.0, -0.0, 2.5]),
    "p": _number(9, 2),
    "q": _number(5, 3),
    "s": st.text(max_size=4) | st.sampled_from(["", "a", "ab", "A%", "ß", "🤦", " 7 "]),
    "b": st.booleans(),
    "day": st.dates() | st.dates(date(2024, 2, 27), date(2024, 3, 2)),
}


@st.composite
def _tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(2, 6))
    columns = [draw(st.lists(st.none() | _VALUES[f.name], min_size=rows, max_size=rows)) for f in _SCHEMA]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def _two(form: str, a: Text, b: Text) -> Text:
    return st.tuples(a, b).map(lambda ab: form.format(*ab))


@functools.cache
def _numbers(depth: int) -> Text:
    columns = st.sampled_from([c for group in _COLUMNS.values() for c in group])
    constants = st.sampled_from(["0", "1", "-3", "7", "2147483648", "1.5", "-0.25", "2.5D", "0.0D", "3L", "1Y", "NULL"])
    leaf = columns | constants
    if depth == 0:
        return leaf
    inner, truth, text = _numbers(depth - 1), _truths(depth - 1), _texts(depth - 1)
    return st.one_of(
        leaf,
        st.sampled_from("+-*/%").flatmap(lambda op: _two(f"({{}} {op} {{}})", inner, inner)),
        inner.map("(-({}))".format),
        inner.map("abs({})".format),
        _two("coalesce({}, {})", inner, inner),
        _two("nullif({}, {})", inner, inner),
        _two("greatest({}, {})", inner, inner),
        _two("least({}, {})", inner, inner),
        st.tuples(truth, inner, inner).map(lambda t: "if({}, {}, {})".format(*t)),
        st.tuples(truth, inner).map(lambda t: "CASE WHEN {} THEN {} END".format(*t)),
        text.map("length({})".format),
        st.sampled_from(["year(day)", "month(day)", "day(day)", "datediff(day, '2024-02-29')"]),
        _two(
            "CAST({} AS {})",
            inner,
            st.sampled_from(["tinyint", "int", "bigint", "float", "double", "decimal(7,1)", "decimal(20,4)"]),
        ),
    )


@functools.cache
def _texts(depth: int) -> Text:
    leaf = st.sampled_from(["s", "'a'", "''", "'ß🤦'", r"'it\'s'", "NULL"])
    if depth == 0:
        return leaf
    inner = _texts(depth - 1)
    whole = st.sampled_from(["i8", "i", "l", "p", "q", "b"])
    return st.one_of(
        leaf,
        _two("({} || {})", inner, inner | whole),
        whole.map("CAST({} AS string)".format),
        _two("coalesce({}, {})", inner, inner),
        _two("nullif({}, {})", inner, inner),
        st.sampled_from(["upper(s)", "lower(s)", "CAST(day AS string)"]),
    )


@functools.cache
def _truths(depth: int) -> Text:
    leaf = st.sampled_from(["b", "TRUE", "FALSE", "d IS NULL", "s LIKE 'a%'", r"s LIKE '_\%'", "day > '2024-02-28'"])
    if depth == 0:
        return leaf
    number, text, truth = _numbers(depth - 1), _texts(depth - 1), _truths(depth - 1)
    compare = st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"])
    return st.one_of(
        leaf,
        compare.flatmap(lambda op: _two(f"({{}} {op} {{}})", number, number)),
        compare.flatmap(lambda op: _two(f"({{}} {op} {{}})", text, text)),
        _two("({} AND {})", truth, truth),
        _two("({} OR {})", truth, truth),
        truth.map("(NOT {})".format),
        number.map("({} IS NULL)".format),
        st.tuples(number, number, number).map(lambda t: "({} BETWEEN {} AND {})".format(*t)),
        st.tuples(number, number, number).map(lambda t: "({} IN ({}, {}))".format(*t)),
        st.tuples(text, text, text).map(lambda t: "({} NOT IN ({}, {}))".format(*t)),
        number.map("CAST({} AS boolean)".format),
    )


_EXPRESSIONS = st.lists(_numbers(2) | _numbers(3) | _truths(2) | _truths(3) | _texts(2), min_size=20, max_size=60)


def _accepted(text: str) -> bool:
    try:
        parse(text, schema=_SCHEMA)
    except ExpressionError as error:
        assert error.code in ("E1302", "E1311"), f"{text}: {error}"
        return False
    return True


@pytest.mark.spark
@settings(max_examples=max(6, settings().max_examples // 4), phases=[Phase.generate])
@given(table=_tables(), texts=_EXPRESSIONS)
def test_generated_expressions_give_sparks_rows(differences: Differences, table: pa.Table, texts: list[str]) -> None:
    assert not differences(table, [t for t in texts if _accepted(t)])


@pytest.mark.long
@given(texts=_EXPRESSIONS)
def test_most_of_what_is_generated_is_accepted(texts: list[str]) -> None:
    assert sum(map(_accepted, texts)) >= len(texts) // 3
