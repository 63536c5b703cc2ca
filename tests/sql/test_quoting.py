"""No name and no value can become code."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InputError
from headwater.sql.expressions import evaluate, literal_sql, parse, quote_identifier

HOSTILE = [
    "'",
    "''",
    "'''",
    '"',
    '""',
    '"""',
    "`",
    "\\",
    "\\'",
    "\\\\'",
    "'; DROP TABLE x; --",
    '"; DROP TABLE x; --',
    "'); DELETE FROM x; --",
    "' OR '1'='1",
    '" OR "1"="1',
    "' OR 1=1 --",
    "' UNION SELECT * FROM secrets --",
    "x' AND (SELECT 1) = 1 AND 'a'='a",
    "--",
    "-- comment",
    "/*",
    "*/",
    "/* x */",
    "#",
    ";",
    ";;",
    "$$",
    "$tag$ x $tag$",
    "E'\\n'",
    "U&'\\0041'",
    "X'41'",
    "r'a'",
    "%",
    "_",
    "%s",
    "%(x)s",
    "{}",
    "{0}",
    "{x}",
    "{{ x }}",
    "{% x %}",
    "${HOME}",
    "?",
    "$1",
    ":name",
    "@x",
    "a\nb",
    "a\r\nb",
    "a\tb",
    "a\0b",
    "\0",
    "\x1a",
    "\u2028",
    "\u202e",
    "\ufeff",
    "ﬀ＇",
    "ʼ",
    "🤦🏼‍♂️",
    "select",
    "a.b",
    " a ",
    "ü" * 300,
    "q0",
    "'q0'",
]


def _one(sql: str) -> object:
    return duckdb.connect().sql(sql).to_arrow_table().column(0)[0].as_py()


def test_the_catalogue_is_large_enough() -> None:
    assert len(set(HOSTILE)) >= 50


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_value_comes_back_as_it_went(text: str) -> None:
    assert _one(f"SELECT {literal_sql(text)}") == text


@pytest.mark.parametrize("text", [h for h in HOSTILE if "\0" not in h])
def test_a_hostile_name_is_a_name(text: str) -> None:
    found = duckdb.connect().sql(f"SELECT 7 AS {quote_identifier(text)}").to_arrow_table()
    assert (found.column_names, found.column(0).to_pylist()) == ([text], [7])


@pytest.mark.parametrize("text", [h for h in HOSTILE if "\0" not in h])
def test_a_hostile_column_is_read_by_its_name(text: str) -> None:
    table = pa.table({text: pa.array([1, 2], pa.int32()), "other": pa.array([5, 5], pa.int32())})
    expression = parse(f"`{text.replace('`', '``')}` > 1", schema=table.schema)
    assert evaluate(expression, table).to_pylist() == [False, True]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_in_an_expression_stays_a_text(text: str) -> None:
    table = pa.table({"s": [text, "other"]})
    written = text.replace("\\", "\\\\").replace("'", "\\'")
    assert evaluate(parse(f"s = '{written}'", schema=table.schema), table).to_pylist() == [True, False]
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    assert evaluate(parse(f"s = '{doubled}'", schema=table.schema), table).to_pylist() == [True, False]


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert _one(f"SELECT {literal_sql(text)}") == text


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**31 - 1,
        -(2**31),
        2**63 - 1,
        -(2**63),
        10**37,
        1.5,
        -0.0,
        1e-320,
        1.7976931348623157e308,
        math.inf,
        -math.inf,
        Decimal("-1.50"),
        Decimal("0.00"),
        Decimal("1e3"),
        Decimal("9" * 38),
        b"",
        b"\x00'\\",
        date(1, 1, 1),
        date(9999, 12, 31),
        datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1, 1, 1),
    ],
)
def test_values_come_back(value: object) -> None:
    found = _one(f"SELECT {literal_sql(value)}")
    assert found == value
    assert repr(found) == repr(value) or not isinstance(value, float)


def test_nan_comes_back() -> None:
    assert _one(f"SELECT isnan({literal_sql(math.nan)})") is True


@pytest.mark.parametrize("value", ["\ud800", object(), [1], Decimal("1e40"), Decimal("nan"), 10**40])
def test_what_has_no_literal_is_refused(value: object) -> None:
    with pytest.raises(InputError):
        literal_sql(value)


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        quote_identifier(name)
