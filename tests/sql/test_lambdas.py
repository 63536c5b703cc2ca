"""Lambdas: what they see, and the functions that take them."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import reduce
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


@settings(max_examples=max(2, settings().max_examples // 6), phases=[Phase.generate])
@given(table=tables)
def test_generated_values(differences: Differences, table: pa.Table) -> None:
    found = differences(table, _LINES)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("transform(xs, 1)", "without a lambda"),
        ("transform(xs, (a, b, c) -> a)", "without a lambda"),
        ("transform(x -> x, xs)", "a lambda in this place"),
        ("transform(s, x -> x)", "transform() of string"),
        ("filter(xs, x -> x + 1)", "a lambda of type int"),
        ("exists(xs, (x, i) -> true)", "without a lambda"),
        ("size(x -> x)", "a lambda cannot stand in size()"),
        ("transform(xs, (x, X) -> x)", "two parameters of one name"),
        ("aggregate(ys, 0, (acc, x) -> acc + x)", "begins with int and goes on with bigint"),
        ("transform(xs, x -> (select 1))", "subquery"),
        ("transform(xs, x -> sum(x))", "aggregate"),
        ("transform(xs, x -> null)", "array<void>"),
        ("array_sort(xs, (a, b) -> a < b)", "a comparator of type boolean"),
        ("x -> x", "`->`"),
        ("transform(sts, x -> x['a'])", "in brackets"),
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
        "transform(xs, x -> 1 / 0)",
        "transform(array(2147483647), x -> x + 1)",
        "filter(xs, x -> x / 0 > 1)",
        "aggregate(array(2147483647, 1), 0, (a, x) -> a + x)",
        "transform(aa, x -> x[5])",
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


def _sum(x: int | None, k: int | None) -> int | None:
    return None if x is None or k is None else x + k


_RECOMPUTED: list[tuple[str, Callable[[list[int | None], int | None], object]]] = [
    ("transform(xs, x -> x + k)", lambda xs, k: [_sum(x, k) for x in xs]),
    ("transform(xs, (x, i) -> x + i)", lambda xs, _: [_sum(x, i) for i, x in enumerate(xs)]),
    ("filter(xs, x -> x > k)", lambda xs, k: [x for x in xs if x is not None and k is not None and x > k]),
    ("aggregate(xs, 0L, (a, x) -> a * 2 + coalesce(x, 0))", lambda xs, _: reduce(lambda a, x: a * 2 + (x or 0), xs, 0)),
    (
        "transform(xs, x -> aggregate(xs, k, (a, y) -> a + coalesce(y, 0)) + x)",
        lambda xs, k: [_sum(x, None if k is None else k + sum(y or 0 for y in xs)) for x in xs],
    ),
    ("array_distinct(xs)", lambda xs, _: list(dict.fromkeys(xs))),
    (
        "array_sort(filter(xs, x -> x is not null), (a, b) -> cast(abs(a) - abs(b) as int))",
        lambda xs, _: sorted([x for x in xs if x is not None], key=abs),
    ),
]


@pytest.mark.parametrize(("text", "recomputed"), _RECOMPUTED, ids=[t for t, _ in _RECOMPUTED])
def test_over_more_rows_than_a_vector_holds(
    text: str, recomputed: Callable[[list[int | None], int | None], object]
) -> None:
    dice = random.Random(7)
    values = [None, *range(-5, 6)]
    lists = [[dice.choice(values) for _ in range(dice.choice([0, 1, 2, 3, 30]))] for _ in range(5000)]
    rows = [None if dice.random() < 0.1 else xs for xs in lists]
    ks = [dice.choice(values) for _ in rows]
    table = pa.table({"xs": pa.array(rows, pa.list_(pa.int64())), "k": pa.array(ks, pa.int64())})
    expected = [None if xs is None else recomputed(xs, k) for xs, k in zip(rows, ks, strict=True)]
    assert evaluate(parse(text, schema=table.schema), table).to_pylist() == expected


def test_a_parameter_hides_a_column_and_not_the_other_way_round() -> None:
    table = pa.table({"xs": pa.array([[1, 2]]), "x": [10], "x 0": [100], "e0_": [1000], "v0_": [7]})
    for text, expected in [
        ("transform(xs, x -> x)", [1, 2]),
        ("transform(xs, y -> x)", [10, 10]),
        ("transform(xs, x -> x + `x 0`)", [101, 102]),
        ("transform(xs, x -> x + e0_ + v0_)", [1008, 1009]),
        ("array_remove(xs, e0_ - 999)", [2]),
        ("filter(xs, x -> exists(xs, x -> x > 1) and x = 1)", [1]),
        ("transform(xs, x -> aggregate(array(x, x), 0L, (a, x) -> a + x))", [2, 4]),
    ]:
        assert evaluate(parse(text, schema=table.schema), table).to_pylist() == [expected], text
