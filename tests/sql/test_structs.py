"""Structs, and casts of nested values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import evaluate, parse

from .nested_data import SCHEMA, TABLE, Differences, lines_of, name_differences, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES = lines_of("structs") + lines_of("casts")


def test_values(differences: Differences) -> None:
    found = differences(TABLE, _LINES)
    assert not found, "\n".join(found)


def test_names(interpreted: SparkSession) -> None:
    found = name_differences(interpreted, _LINES)
    assert not found, "\n".join(found)


@settings(max_examples=max(2, settings().max_examples // 6), phases=[Phase.generate])
@given(table=tables)
def test_generated_values(differences: Differences, table: pa.Table) -> None:
    found = differences(table, _LINES)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("struct()", "struct() with 0 argument(s)"),
        ("struct(i, I)", "a struct with these names"),
        ("named_struct('a', 1, 'A', 2)", "a struct with these names"),
        ("named_struct(s, 1)", "a struct with these names"),
        ("named_struct('a', null)", "nothing but nulls"),
        ("named_struct('a')", "1 argument(s)"),
        ("struct(i).x", "the field `x`"),
        ("st['x']", "the field `x`"),
        ("st = struct('a' as x, 'a' as y)", "a comparison of"),
        ("cast(st as struct<a: int>)", "a cast of struct"),
        ("cast(xs as map<int, int>)", "a cast of array<int> to map<int,int>"),
        ("cast(xs as int)", "a cast of array<int> to int"),
        ("cast(i as array<int>)", "int to array<int>"),
        ("try_cast(ss as array<int>)", "try_cast of array<string>"),
        ("cast(st as struct<a: int, A: int>)", "two fields of one name"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, schema=SCHEMA)
    assert what in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "cast(array('x') as array<int>)",
        "cast(array(300) as array<tinyint>)",
        "cast(map('x', 1) as map<int, int>)",
        "cast(struct('x') as struct<a: int>)",
    ],
)
def test_what_fails_here_fails_in_spark(text: str, interpreted: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    row = TABLE.slice(0, 1)
    with pytest.raises(ExpressionError) as caught:
        evaluate(parse(text, schema=SCHEMA), row)
    assert caught.value.code in ("E1303", "E1311")  # when it is run, or already when a constant is read
    with pytest.raises((PySparkException, Py4JJavaError)):
        interpreted.createDataFrame(row).selectExpr(text).collect()
