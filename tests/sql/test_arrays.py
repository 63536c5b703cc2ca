"""Functions of arrays give Spark's values, types and names."""

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

_LINES = lines_of("arrays")


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
        ("shuffle(xs)", "another answer at each run"),
        ("array_contains(xs, 'a')", "array<int> and string"),
        ("array_contains(xs, null)", "array<int> and void"),
        ("array_distinct(array(m))", "array<map<string,int>>"),
        ("array_distinct(array(array(d)))", "array<array<double>>"),
        ("array_union(xs, ss)", "array<int> and array<string>"),
        ("array_join(ss, s)", "no constant"),
        ("arrays_zip(xs, xs)", "one name"),
        ("sort_array(xs, k > 1)", "no constant"),
        ("sequence(s, s)", "sequence() of string"),
        ("sequence(1, 2.5)", "sequence() of decimal"),
        ("array(i, s)", "int and string"),
        ("array()", "array<void>"),
        ("flatten(xs)", "flatten() of array<int>"),
        ("xs['a']", "the field `a`"),
        ("m = m", "a comparison of map<string,int>"),
        ("size(s)", "size() of string"),
        ("explode(xs)", "no function explode()"),
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
        "xs[7]",
        "xs[-1]",
        "element_at(xs, 0)",
        "element_at(xs, 9)",
        "try_element_at(xs, 0)",
        "slice(xs, 0, 1)",
        "slice(xs, 1, -1)",
        "array_insert(xs, 0, 1)",
        "sequence(1, 5, -1)",
        "sequence(1, 5, 0)",
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
