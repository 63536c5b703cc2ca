"""Everything outside the allow list is refused by name, with a hint; nothing is passed through."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import parse, parse_condition

_SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("p", pa.decimal128(30, 2)),
        ("w", pa.decimal128(38, 20)),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("li", pa.list_(pa.int32())),
        ("b", pa.bool_()),
    ]
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a in (select 1)", "subquery"),
        ("exists(select 1)", "subquery"),
        ("(select 1) = a", "subquery"),
        ("sum(a) > 1", "aggregate"),
        ("count(*) > 1", "aggregate"),
        ("sum(a) over () > 1", "window"),
        ("row_number() = 1", "window function"),
        ("rand() > 0.5", "another answer at each run"),
        ("current_date", "another answer at each run"),
        ("current_timestamp()", "another answer at each run"),
        ("uuid() = s", "another answer at each run"),
        ("s ilike s", "not a constant"),
        ("s like s", "not a constant"),
        (r"s like 'a\\b'", "LIKE pattern"),
        (r"s like 'a\\'", "LIKE pattern"),
        ("s like 'a' escape '%'", "ESCAPE"),
        ("uper(s)", "uper()"),
        ("length(s, s)", "2 argument"),
        ("d div 2", "DIV of double"),
        ("d & 1", "`&` of double"),
        ("s[0] = 1", "`[…]` of string"),
        ("li = a", "array<int> and int"),
        ("interval 1 day", "a value of type interval day"),
        ("day + 1L", "date and bigint"),
        ("day - day", "a value of type interval day"),
        ("s + 1", "string and int"),
        ("-s", "minus of string"),
        ("a = true", "int and boolean"),
        ("a = 'x'", "'x' as bigint"),
        ("a = '1.5'", "'1.5' as bigint"),
        ("day = 'soon'", "'soon' as date"),
        ("day = '2023-02-29'", "'2023-02-29' as date"),
        ("ts > 'noon'", "'noon' as timestamp"),
        ("b = 'maybe'", "'maybe' as boolean"),
        ("s = X'00'", "string and binary"),
        ("d in ('a')", "'a' as double"),
        ("greatest(a, 'x')", "int and string"),
        ("a and b", "condition of type int"),
        ("not a", "condition of type int"),
        ("case when a then 1 end", "condition of type int"),
        ("case when null then 1 end", "condition of type void"),
        ("cast(d as decimal(10,2))", "double to decimal"),
        ("cast(a as timestamp_ntz)", "int to timestamp_ntz"),
        ("cast(a as decimal(50,2))", "decimal(50,2)"),
        ("cast(a as array<int>)", "int to array<int>"),
        ("w * w", "more than 38 digits"),
        ("w + w", "more than 38 digits"),
        ("128Y", "128 as tinyint"),
        ("1e999", "1e999"),
        ("1" * 39, "38 digits"),
        ("0x10", "hexadecimal digits"),
        ("a + not b", "without parentheses"),
        ("a = a like s", "LIKE with a pattern"),
        ("date_add(day, l)", "bigint"),
        ("a as x", "`AS`"),
        ("*", "`*`"),
        ("?", "the parameter ? without a value"),
        (":x", "the parameter :x without a value"),
        ("decimal '1.5'", "typed literal"),
        ("a -> 1", "`->`"),
        ("(" * 2000 + "a" + ")" * 2000, "nested this deep"),
        ("a" + " + 1" * 5000, "nested this deep"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, schema=_SCHEMA)
    assert caught.value.code in ("E1302", "E1311")
    assert what in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "why", "position"),
    [
        ("a >", "missing", 2),
        ("a = = 1", "missing", 2),
        ("a is ! null", "IS NOT NULL", 2),
        ("a between 1", "AND is expected", 10),
        ("s like any ()", "patterns", 7),
        ("overlay(s placing 'x')", "OVERLAY", 21),
        ("cast(s as varchar)", "needs a length", 10),
        ("a is null = true", "not expected", 10),
        ("(a", "expected )", 1),
        ("a, a", "not expected", 1),
        ("a > 1 drop table x", "not expected", 6),
        ("a > 1; drop table x", "without `;`", 5),
        ("a > 1 -- all", "comments", 6),
        ("a /* x */ > 1", "comments", 2),
        ("a::text", "not expected", 3),
        ("a +", "missing", 2),
        ("a = +", "missing", 4),
        ("s = 'abc", "never closed", 4),
        ("`s = 1", "never closed", 0),
        ("{{x}}", "no meaning", 0),
        ("X'zz' = s", "hexadecimal", 0),
        (r"s = '\ud800'", "Unicode", 4),
        ("s = 'a long text' and and", "missing", 22),
    ],
)
def test_syntax_errors_point_at_the_place(text: str, why: str, position: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, schema=_SCHEMA)
    assert caught.value.code == "E1301"
    assert why in caught.value.message
    assert caught.value.where is not None
    assert caught.value.where.split("\n")[-1].index("^") - 9 == position


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_nothing_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError, match="empty"):
        parse(text, schema=_SCHEMA)


def test_a_condition_is_a_boolean() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_condition("a + 1", schema=_SCHEMA)
    assert caught.value.code == "E1304"
    assert parse_condition("null", schema=_SCHEMA).dtype == pa.bool_()
