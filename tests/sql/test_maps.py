"""Maps: making them, their parts, and lambdas over them."""

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

_LINES = lines_of("maps")


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
        ("map()", "map<void,void>"),
        ("map(1)", "map() of 1 arguments"),
        ("map(d, 1)", "keys of type double"),
        ("map(st, 1)", "keys of type struct"),
        ("map('a', null)", "nothing but nulls"),
        ("map('a', 1, 2, 3)", "string and int"),
        ("m[1]", "with a key of type int"),
        ("mi['a']", "with a key of type string"),
        ("m[null]", "with a key of type void"),
        ("map_contains_key(m, null)", "void"),
        ("map_keys(xs)", "map_keys() of array<int>"),
        ("map_concat(m, mi)", "map<string,int> and map<bigint,string>"),
        ("map_from_entries(xs)", "map_from_entries() of array<int>"),
        ("str_to_map(s, '|')", "these marks"),
        ("str_to_map(s, s)", "these marks"),
        ("map_zip_with(m, mi, (k, a, b) -> a)", "map_zip_with() of"),
        ("transform_keys(m, (a, v) -> d)", "keys of type double"),
        ("m < m", "a comparison of map"),
        ("m in (m)", "IN of map"),
        ("array_contains(array(m), m)", "array<map<string,int>>"),
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
        "map('a', 1, 'a', 2)",
        "map(cast(null as string), 1)",
        "map_from_arrays(array('a', 'a'), array(1, 2))",
        "map_from_arrays(array('a'), array(1, 2))",
        "map_concat(m, map('a', 1))",
        "map_from_entries(array(struct('a', 1), struct('a', 2)))",
        "transform_keys(m, (a, v) -> 'x')",
        "str_to_map('a:1,a:2')",
    ],
)
def test_what_fails_here_fails_in_spark(text: str, interpreted: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    row = TABLE.slice(0, 1)
    with pytest.raises(ExpressionError) as caught:
        evaluate(parse(text, schema=SCHEMA), row)
    assert caught.value.code == "E1303"
    with pytest.raises((PySparkException, Py4JJavaError)):
        interpreted.createDataFrame(row).selectExpr(text).collect()
