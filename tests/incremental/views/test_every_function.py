"""Every function of the catalogue as a view: Spark's rows after rows came and went, or a refusal that names it.

The calls and the tables are those that hold the catalogue against Spark (tests/sql/fixtures): expressions over the extremes of all types, and
queries of aggregates and windows. All expressions over one table are one view and one query of Spark; queries that differ only in what
they select are one, too. Where something is refused it is found by halving, and listed in refused_functions.txt, which
HEADWATER_UPDATE_GOLDEN=1 writes anew.

Every day each function is asked at least once over each table, and each with all of its arguments where HEADWATER_TEST_SEEDS is set, as by
`make soak`: the programs of all expressions are held against DuckDB in tests/sql/vectorised/test_catalogue.py.

A row for which an expression fails here (ANSI) is left out of it on both sides: to stop is always allowed.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.sql import conftest, nested_data
from tests.sql import test_aggregate_functions as groups
from tests.sql import test_coverage as coverage
from tests.sql import test_datetime_functions as moments
from tests.sql import test_intervals as intervals
from tests.sql import test_math_functions as numbers
from tests.sql import test_queries as queries
from tests.sql import test_string_functions as texts
from tests.sql import test_varied_functions as varied
from tests.sql.conftest import fixture_lines
from tests.sql.vectorised import test_catalogue as catalogue
from tests.sql.vectorised.agreement import columns_of

from headwater.base.errors import ExpressionError, HeadwaterError, SchemaError, UnsupportedError
from headwater.sql.expressions import parse
from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS, UNSTABLE
from headwater.sql.functions.math import INEXACT
from headwater.sql.vectorised import compile_expression

from .selections import merged, select
from .stepwise import Answer, History, by_bits, circuit_of, play, small, spark_answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

extremes = conftest.extremes

_GOLDEN = Path(__file__).parent / "refused_functions.txt"
_MATCHED = pa.table({"s": pa.array([*texts._MATCHED, *catalogue._ODD])})
_PATTERNS = pa.table({"s": pa.array([*catalogue._PATTERN_TEXTS, None])})
# Spark collects in the order in which it meets the rows, a view by value.
_UNORDERED = re.compile(r"(collect_list|collect_set|array_agg)\(((?!\bover\b).)*$", re.IGNORECASE)
# What may be one of several values in Spark: without an order, or among rows that tie in it.
_OPEN = (
    "first(k) over (order by p range between 1.25 preceding and 0.25 preceding)",
    "first(m)",
    "first_value(s, true)",
    "last_value(s, true)",
)
# Those that no view has, whatever they are called with.
_NOT_KEPT = {"approx_count_distinct", "bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg"}
_WORD = re.compile(r"[a-z_]\w*|[^\w\s(),'.]+")
_EVERYTHING = "HEADWATER_TEST_SEEDS" in os.environ
_FAMILIES = ("extremes", "numbers", "strings", "regexps", "datetime", "intervals", "patterns", "nested", "varied")


def _family(name: str, everything: pa.Table) -> tuple[pa.Table, list[str]]:
    """A table, and expressions over it."""
    if name == "extremes":
        return everything, [*fixture_lines("agrees.sql"), *fixture_lines("functions.sql")]
    if name == "numbers":
        return numbers._table(1), [*fixture_lines("numbers.sql"), *numbers._MATH, *numbers._EXACT]
    tables = {"strings": texts._table(1), "regexps": _MATCHED, "datetime": moments._table(1), "patterns": _PATTERNS}
    tables["intervals"], tables["varied"] = intervals.table(1), varied._table(1)
    table = tables.get(name, nested_data.TABLE)
    lines = [line for line in fixture_lines(f"{name}.sql") if not line.startswith(("select ", "with ", "from "))]
    return table, [*lines, "s regexp 'b*'"] if name == "regexps" else lines


def _chosen(lines: Iterable[str]) -> list[str]:
    """Expressions with a word or an operator that none before them has, and a sixth of the others."""
    distinct = list(dict.fromkeys(lines))
    if _EVERYTHING:
        return distinct
    seen: set[str] = set()
    chosen = []
    for number, line in enumerate(distinct):
        words = set(_WORD.findall(re.sub("'[^']*'", "''", line.lower())))
        if not words <= seen or number % 6 == 0:
            chosen.append(line)
        seen |= words
    return chosen


def _guarded(text: str, table: pa.Table) -> str:
    """The expression for the rows for which it does not fail."""
    program = compile_expression(parse(text, schema=table.schema), table.schema)
    columns, rows = columns_of(table), table.num_rows
    try:
        program.run(columns, rows)
        return f"({text})"
    except ExpressionError:
        failing = []
    for row in range(rows):
        try:
            program.run(columns_of(table.slice(row, 1)), 1)
        except ExpressionError as error:
            assert error.code == "E1303", f"{text}: {error}"
            failing.append(str(row))
    return f"CASE WHEN row_number_ NOT IN ({', '.join(failing)}) THEN ({text}) END"


def _refused(keys: Sequence[str], items: Sequence[str], rest: str, schemas: dict[str, pa.Schema]) -> dict[str, str]:
    """What is refused of the items of a query, with the reasons: found by halving."""
    try:
        circuit_of(select([*keys, *items], rest), schemas)
        return {}
    except HeadwaterError as error:
        if len(items) == 1:
            assert isinstance(error, UnsupportedError | ExpressionError), f"{items[0]}{rest}: {error}"
            return {items[0]: str(error).split("\n")[0]}
    half = len(items) // 2
    return {**_refused(keys, items[:half], rest, schemas), **_refused(keys, items[half:], rest, schemas)}


def _different(items: Sequence[str], rest: str, ours: Answer, theirs: Answer) -> list[str]:
    """The items whose types or values differ, each with the first row in which they do."""
    if len(ours.rows) != len(theirs.rows):
        return [f"{len(ours.rows)} rows and not {len(theirs.rows)}: {select(items, rest)}"]
    found = []
    for i, item in enumerate(items):
        here, there = ([row[i] for row in answer.rows] for answer in (ours, theirs))
        if _UNORDERED.match(item):
            here, there = ([v if v is None else sorted(v, key=repr) for v in column] for column in (here, there))
        if (ours.types[i], here) != (theirs.types[i], there):
            at = next((k for k, (a, b) in enumerate(zip(here, there, strict=True)) if a != b), 0)
            pair = f"{ours.types[i]} {here[at]!r}\n  spark: {theirs.types[i]} {there[at]!r}" if here else "types"
            found.append(f"{item}{rest}\n  row:   {at}\n  view:  {pair}")
    return found


@pytest.mark.spark
@pytest.mark.parametrize("name", _FAMILIES)
def test_scalar_functions(name: str, extremes: pa.Table, interpreted: SparkSession) -> None:
    table, lines = _family(name, extremes)
    table = table.append_column("row_number_", pa.array(range(table.num_rows), pa.int32()))
    zero = pa.array([0] * table.num_rows, pa.int8())
    one = pa.array([1] * table.num_rows, pa.int8())
    history = History(table.append_column("copy_", zero), table.append_column("copy_", one))
    items = [_guarded(text, table) for text in _chosen(lines)]
    keys = ["row_number_", "copy_"]
    schemas = {"t": history.final.schema}
    refused = _refused(keys, items, " FROM t", schemas)
    assert not refused, refused
    interpreted.createDataFrame(history.final).coalesce(1).createOrReplaceTempView("t")
    exact = [i for i in items if not _is_inexact(i)]
    found: list[str] = []
    for chosen, values in ((exact, by_bits), ([i for i in items if i not in exact], None)):
        if chosen:
            sql = select([*keys, *chosen], " FROM t")
            options = {} if values is None else {"values": values}
            ours = play(circuit_of(sql, schemas), {"t": history}, **options)
            found += _different([*keys, *chosen], " FROM t", ours, spark_answer(interpreted, sql, **options))
    assert not found, "\n".join(found)


def _is_inexact(text: str) -> bool:
    """Does the last digit depend on the mathematical library?"""
    return any(re.search(rf"\b{name}\(", text) for name in INEXACT)


_NAMES = ("aggregates", "windows", "approximate", "durations", "formats")
_QUERIES = {
    "of many rows": [
        *(line for name in _NAMES for line in fixture_lines(f"{name}.sql")),
        "select g, array_agg(i), array_agg(s) from r group by g",
        *(line for name, line in coverage.EXAMPLES.items() if name not in coverage.REFUSED),
    ],
    "of nested values": [
        line for line in fixture_lines("nested.sql") if line.startswith(("select ", "with ", "from "))
    ],
}
_TABLES: dict[str, dict[str, pa.Table]] = {
    "of many rows": {**queries.TABLES, **groups.TABLES},
    "of nested values": {"n": nested_data.TABLE},
}


def _histories(name: str) -> dict[str, History]:
    """The tables, each with rows that pass: its own ones again, or those of another table of its kind."""
    other = {"r": groups._rows(3), "none": groups._rows(4)}
    return {n: History(t, other.get(n, t)) for n, t in _TABLES[name].items()}


@functools.cache
def _asked(name: str) -> tuple[list[tuple[list[str], str]], dict[str, str]]:
    """The queries as items and what follows them, and what is refused, with the reasons."""
    found, alone = merged(_QUERIES[name])
    schemas = {n: t.schema for n, t in _TABLES[name].items()}
    asked: list[tuple[list[str], str]] = []
    refused: dict[str, str] = {}
    for (_, rest), items in found.items():
        without = _refused([], items, rest, schemas)
        refused.update({item + rest: why for item, why in without.items()})
        if kept := [i for i in items if i not in without and i not in _OPEN]:
            asked.append((kept, rest))
    for query in alone:
        try:
            circuit_of(query, schemas)
            asked.append(([], query))
        except (UnsupportedError, ExpressionError, SchemaError) as error:
            refused[query] = str(error).split("\n")[0]
    return asked, refused


@pytest.mark.spark
@pytest.mark.parametrize("name", _QUERIES)
def test_functions(name: str, interpreted: SparkSession) -> None:
    histories = _histories(name)
    for table, history in histories.items():
        interpreted.createDataFrame(history.final).coalesce(1).createOrReplaceTempView(table)
    small(interpreted)
    asked = _asked(name)[0]
    # A query that stands alone is a job of Spark's, and most of those of nested values are forms of explode.
    several = asked if _EVERYTHING else [(items, rest) for i, (items, rest) in enumerate(asked) if items or i % 4 == 0]
    found = [one for items, rest in several for one in _compared(items, rest, histories, interpreted)]
    assert not found, "\n".join(found)


def _compared(items: list[str], rest: str, histories: dict[str, History], session: SparkSession) -> list[str]:
    """The differences of a query; one that Spark cannot plan is halved."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    sql = select(items, rest) if items else rest
    try:
        theirs = spark_answer(session, sql)
    except (PySparkException, Py4JJavaError) as error:
        if len(items) < 2:
            return [f"{sql}\n  spark fails: {str(error).splitlines()[0]}"]
        half = len(items) // 2
        return [d for some in (items[:half], items[half:]) for d in _compared(some, rest, histories, session)]
    ours = play(circuit_of(sql, {n: h.final.schema for n, h in histories.items()}), histories)
    return _different(items or ours.names, rest, ours, theirs)


@pytest.mark.long
def test_what_is_refused_is_listed() -> None:
    refused = {item: why for name in _QUERIES for item, why in _asked(name)[1].items()}
    text = "".join(f"{item}\n    {why}\n" for item, why in sorted(refused.items()))
    if os.environ.get("HEADWATER_UPDATE_GOLDEN"):
        _GOLDEN.write_text(text, encoding="utf-8")
    assert _GOLDEN.read_text(encoding="utf-8") == text


@pytest.mark.long
def test_every_function_is_asked(extremes: pa.Table) -> None:
    lines = [line for name in _FAMILIES for line in _chosen(_family(name, extremes)[1])]
    lines += [part for name in _QUERIES for items, rest in _asked(name)[0] for part in (*items, rest)]
    words = {word for line in lines for word in re.findall(r"\w+", line.lower())}
    assert {name for name in (*FUNCTIONS, *AGGREGATES) if re.fullmatch(r"\w+", name)} - words == _NOT_KEPT


def test_what_no_view_can_keep_is_refused_by_name() -> None:
    schemas = {"t": pa.schema([("a", pa.int32())])}
    for name in sorted(UNSTABLE - {"current_timezone"}):  # which is UTC
        with pytest.raises((UnsupportedError, ExpressionError), match=name):
            circuit_of(f"SELECT {name}() AS c FROM t", schemas)
