"""Constants that are put together are judged as literals are; and an error says what is at fault: the rows, or the expression."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import evaluate, parse
from headwater.sql.folding import folded
from headwater.sql.nodes import Call, Literal
from headwater.sql.vectorised import compile_expression
from headwater.sql.vectorised.vector import Vector

_ROWS = pa.table({"s": ["a/b"], "n": pa.array([1], pa.int32())})


@pytest.mark.parametrize(
    "text",
    [
        r"split(s, concat('\\Q', '/', '\\E'))",
        "regexp_replace(s, concat('(', 'a'), 'x')",
        "s RLIKE concat('a', '(')",
        "date_format(timestamp'2024-01-01', concat('b', 'b'))",
        "encode(s, upper('none'))",
        "from_json(s, concat('a ', 'nothing'))",
        r"s LIKE concat('a', '\\')",
    ],
)
def test_a_bad_constant_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, schema=_ROWS.schema)
    assert caught.value.code != "E1303"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("split(s, concat('/', ''))", "split(s, '/')"),
        ("round(2.567D, length('ab'))", "round(2.567D, 2)"),
        ("s LIKE concat('a', '%')", "s LIKE 'a%'"),
        ("s ILIKE concat('A', '%')", "s ILIKE 'A%'"),
        ("get_json_object(s, concat('$', '.a'))", "get_json_object(s, '$.a')"),
    ],
)
def test_a_good_constant_is_the_literal(text: str, plain: str) -> None:
    assert parse(text, schema=_ROWS.schema).node == parse(plain, schema=_ROWS.schema).node


def test_what_fails_or_is_long_stays_as_it_is() -> None:
    for text in ("repeat('a', 20000)", "element_at(array('a'), 3)", "concat(s, 'a')"):
        node = parse(text, schema=_ROWS.schema).node
        assert isinstance(node, Call) and folded(node) is node
    short = parse("repeat('a', 3)", schema=_ROWS.schema).node
    assert folded(short) == Literal("aaa", pa.string())


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("split(s, concat('[', s))", "write a pattern"),
        ("regexp_extract(s, s, n)", "name a group"),
        ("encode(s, s)", "name one of UTF-8"),
        ("date_format(timestamp'2024-01-01', s)", "write a format"),
        ("1 / (n - 1)", "try_divide"),
    ],
)
def test_a_hint_names_what_is_at_fault(text: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(parse(text, schema=_ROWS.schema), _ROWS)
    assert caught.value.code == "E1303" and hint in str(caught.value.hint)
    assert "remedy!" not in str(caught.value)


def test_what_reads_no_column_is_not_mended_by_rows() -> None:
    program = compile_expression(parse("1 / 0", schema=_ROWS.schema), _ROWS.schema)
    columns = [Vector(pa.string(), ["a"]), Vector(pa.int32(), [1])]
    with pytest.raises(ExpressionError) as caught:
        program.run(columns, 1)
    assert "change the expression" in str(caught.value.hint)
