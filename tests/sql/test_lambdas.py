"""Lambdas: what they see, and the functions that take them."""

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

_LINES = lines_of("lambdas")


def test_values(differences: Differences) -> None:
    found = differences(TABLE, _LINES)
    assert not found, "\n".join(found)


def test_names(interpreted: SparkSession) -> None:
    found = name_differences(interpreted, _LINES)
    assert not found, "\n".join(found)


@settings(max_examples=max(4, settings().max_examples // 6), phases=[Phase.generate])
@given(table=tables)
def test_generated_values(differences: Differences, table: pa.Table) -> None:
    found = differences(table, _LINES)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('transform(xs, 1)', 'without a lambda'),
        ('transform(xs, (a, b, c) -> a)', 'without a lambda'),
        ('transform(x -> x, xs)', 'a lambda in this place'),
        ('transform(s, x -> x)', 'transform() of string'),
        ('filter(xs, x -> x + 1)', 'a lambda of type int'),
        ('exists(xs, (x, i) -> true)', 'without a lambda'),
        ('size(x -> x)', 'a lambda in size()'),
        ('transform(xs, (x, X) -> x)', 'two parameters of one name'),
        ('aggregate(ys, 0, (acc, x) -> acc + x)', 'begins with int and goes on with bigint'),
        ('transform(xs, x -> (select 1))', 'subquery'),
        ('transform(xs, x -> sum(x))', 'aggregate'),
        ('transform(xs, x -> null)', 'array<void>'),
        ('array_sort(xs, (a, b) -> a < b)', 'a comparator of type boolean'),
        ('x -> x', 'JSONEXTRACT'),
        ("transform(sts, x -> x['a'])", 'in brackets'),
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
        'transform(xs, x -> 1 / 0)',
        'transform(array(2147483647), x -> x + 1)',
        'filter(xs, x -> x / 0 > 1)',
        'aggregate(array(2147483647, 1), 0, (a, x) -> a + x)',
        'transform(aa, x -> x[5])',
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
