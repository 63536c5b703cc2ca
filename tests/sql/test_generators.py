"""Generators, and queries whose keys are nested: names, types and rows as Spark gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings

from headwater.base.errors import ExpressionError
from headwater.sql.query import parse_query

from .nested_data import SCHEMA, lines_of, query_differences, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("section", ["generators", "rows"])
def test_rows(section: str, interpreted: SparkSession) -> None:
    found = query_differences(interpreted, lines_of(section))
    assert not found, "\n".join(found)


_TOTAL = [t for t in lines_of("generators") + lines_of("rows") if "array_max" not in t and "sequence" not in t]


@settings(max_examples=1, phases=[Phase.generate])
@given(table=tables)
def test_generated_rows(interpreted: SparkSession, table: pa.Table) -> None:
    assume(table["xs"].null_count < table.num_rows)  # the first that is drawn has nothing in it
    found = query_differences(interpreted, _TOTAL, table)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("select explode(s) from n", "explode() cannot take string"),
        ("select explode(xs), explode(ys) from n", "beside another one"),
        ("select explode(xs), row_number() over (order by id) from n", "beside another one"),
        ("select explode(xs) + 1 from n", "the function explode()"),
        ("select explode(array()) from n", "array<void>"),
        ("select explode(m) as x from n", "1 name(s) are given"),
        ("select * from n lateral view explode(xs) e as a, b", "2 name(s) are given"),
        ("select explode(xs, ys) from n", "and 2 are given"),
        ("select inline(xs) from n", "inline() cannot take array<int>"),
        ("select stack(k, 1) from n", "needs a number of rows"),
        ("select stack(2, 1, 'a') from n", "int and string"),
        ("select json_tuple(s, s) from n", "not a constant"),
        ("select explode(collect_list(i)) from n", "in explode()"),
        ("select * from n lateral view flatten(aa) e as x", "the generator flatten()"),
        ("select m, count(*) from n group by m", "GROUP BY map"),
        ("select ds, count(*) from n group by ds", "GROUP BY array<double>"),
        ("select distinct m from n", "SELECT DISTINCT of map"),
        ("select m from n union select m from n", "UNION of map"),
        ("select m from n order by m", "ORDER BY map"),
        ("select count(distinct m) from n", "DISTINCT"),
        ("select xs from n union all select ss from n", "array<int> and array<string>"),
        ("select transform(xs, x -> max(x)) from n", "in a lambda"),
        ("select transform(xs, x -> (select 1)) from n", "a subquery in a lambda"),
        ("select exists(xs, x -> x in (select 1)) from n", "a subquery in a lambda"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_query(text, lambda *_: SCHEMA)
    assert what in caught.value.message
    # What Spark refuses too is no reason to go there.
    assert caught.value.code == "E1311" or 'engine="spark"' in str(caught.value.hint)
