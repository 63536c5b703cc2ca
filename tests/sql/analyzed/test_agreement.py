"""Two front ends, one meaning: Spark's analyzer and the reader of SQL over all texts that the reader is tested with.

The plans' names, types and rows in DuckDB have to be the same. Expressions go many to a query. The suite takes every expression and a part of the
queries; HEADWATER_TEST_SEEDS=1 takes all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from tests.sql import nested_data
from tests.sql import test_aggregate_functions as aggregates
from tests.sql import test_coverage as coverage
from tests.sql import test_datetime_functions as moments
from tests.sql import test_intervals as intervals
from tests.sql import test_math_functions as numbers
from tests.sql import test_queries as whole
from tests.sql import test_string_functions as texts
from tests.sql import test_varied_functions as varied
from tests.sql.conftest import fixture_lines
from tests.sql.oracle import plan_of as read_plan

from headwater.base.errors import HeadwaterError, UnsupportedError
from headwater.spark.analyzer import analyzed
from headwater.sql.analyzed import plan_of
from headwater.sql.plan import Plan, Project

from .spoken import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
Tables = Mapping[str, pa.Table]
_EVERY = 1 if os.environ.get("HEADWATER_TEST_SEEDS") else 6
_AT_ONCE = 40
_REFUSED = {"HistogramNumeric"}


def _difference(spark: SparkSession, text: str, tables: Tables) -> str | None:
    """What the two plans of a text differ in."""
    ours = read_plan(text, tables)
    theirs = plan_of(analyzed(spark, text, {n: t.schema for n, t in tables.items()}))
    if (ours.schema.names, ours.schema.types) != (theirs.schema.names, theirs.schema.types):
        return f"{text}\n  reader: {ours.schema}\n  spark: {theirs.schema}"
    if ours.dump() == theirs.dump():
        return None
    found = [_outcome(plan, tables) for plan in (ours, theirs)]
    if found[0] != found[1]:
        return f"{text}\n  reader: {found[0]}\n  spark: {found[1]}\n{ours.dump()}\n{theirs.dump()}"
    return None


def _outcome(plan: Plan, tables: Tables) -> object:
    try:
        return rows_of(plan, tables)
    except duckdb.Error as error:
        return type(error).__name__


def _differences(spark: SparkSession, lines: Sequence[str], tables: Tables) -> list[str]:
    found = (_difference(spark, line, tables) for line in lines)
    return [f for f in found if f is not None]


def _expressions(extremes: pa.Table) -> Iterator[tuple[str, list[str], pa.Table]]:
    yield "agrees", fixture_lines("agrees.sql"), extremes
    yield "functions", fixture_lines("functions.sql"), extremes
    yield "numbers", fixture_lines("numbers.sql"), numbers._table(1)
    yield "strings", fixture_lines("strings.sql"), texts._table(1)
    yield "datetime", fixture_lines("datetime.sql"), moments._table(1)
    yield "patterns", fixture_lines("patterns.sql"), pa.table({"s": ["2024-01-31", "x", None, "12:30"]})
    yield "regexps", fixture_lines("regexps.sql"), pa.table({"s": pa.array(texts._MATCHED)})
    yield (
        "varied",
        [n for n in fixture_lines("varied.sql") if not any(w in n for w in ("assert_true", "TIME'", "broken"))],
        varied._table(1),
    )
    yield "intervals", fixture_lines("intervals.sql"), intervals.table(1)
    plain = [line for line in fixture_lines("nested.sql") if not line.lower().startswith(("select", "with"))]
    yield "nested", plain, nested_data.TABLE


def test_every_expression_means_the_same(spark: SparkSession, extremes: pa.Table) -> None:
    differences, count = [], 0
    for _, lines, table in _expressions(extremes):
        for at in range(0, len(lines), _AT_ONCE):
            part = lines[at : at + _AT_ONCE]
            differences += _different_items(spark, part, table)
            count += len(part)
    assert not differences, "\n".join(differences)
    assert count > 2_000


def _different_items(spark: SparkSession, lines: Sequence[str], table: pa.Table) -> list[str]:
    """Expressions of one select list that differ; where the trees do, their rows are asked, each alone."""
    text = "SELECT " + ", ".join(f"{line} AS c{i}" for i, line in enumerate(lines)) + " FROM x"
    ours = read_plan(text, {"x": table})
    theirs = plan_of(analyzed(spark, text, {"x": table.schema}))
    assert isinstance(ours, Project) and isinstance(theirs, Project) and ours.child == theirs.child
    out = []
    for line, a, b in zip(lines, ours.items, theirs.items, strict=True):
        if a.node == b.node:
            continue
        found = [_outcome(Project(ours.child, (item,)), {"x": table}) for item in (a, b)]
        if a.node.dtype != b.node.dtype or found[0] != found[1]:
            out.append(f"{line}\n  reader: {a.node.dtype} {found[0]}\n  spark: {b.node.dtype} {found[1]}")
    return out


def test_nested_queries_mean_the_same(spark: SparkSession) -> None:
    lines = [line for line in fixture_lines("nested.sql") if line.lower().startswith(("select", "with"))]
    assert not _differences(spark, lines[:: _EVERY // 2 or 1], {"n": nested_data.TABLE})


@pytest.mark.parametrize(
    "name", ["queries.sql", "approximate.sql", "formats.sql", "pivot.sql", "durations.sql", "forms.sql"]
)
def test_queries_mean_the_same(spark: SparkSession, name: str) -> None:
    lines = [line for line in fixture_lines(name) if not line.startswith("--")]
    whole_file = name in ("pivot.sql", "durations.sql", "forms.sql")
    assert not _differences(spark, lines if whole_file else lines[::_EVERY], whole.TABLES)


@pytest.mark.parametrize("name", ["aggregates.sql", "windows.sql"])
def test_aggregates_and_windows_mean_the_same(spark: SparkSession, name: str) -> None:
    assert not _differences(spark, fixture_lines(name)[::_EVERY], aggregates.TABLES)


def test_the_most_used_classes_mean_the_same(spark: SparkSession) -> None:
    different, refused = [], set()
    for name, text in coverage.EXAMPLES.items():
        try:
            different += _differences(spark, [text], coverage.TABLES)
        except UnsupportedError as error:
            assert name in str(error)
            refused.add(name)
        except HeadwaterError:
            refused.add(name)  # by the reader
    assert not different, "\n".join(different)
    assert refused <= _REFUSED
    assert len(coverage.EXAMPLES) - len(refused) >= 186
