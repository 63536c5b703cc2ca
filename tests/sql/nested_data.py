"""Rows with arrays, maps and structs: a fixed table of their oddities, and strategies for more of them.

Elements are drawn from few values, so that equal ones meet: nulls, NaN, both zeros, the ends of the integers, texts beyond ASCII.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from .oracle import FIXTURES, in_any_order, run_here, run_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Differences = Callable[[pa.Table, Sequence[str]], list[str]]
_PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("xs", pa.list_(pa.int32())),
        ("ys", pa.list_(pa.int64())),
        ("ds", pa.list_(pa.float64())),
        ("es", pa.list_(pa.float64())),
        ("ss", pa.list_(pa.string())),
        ("aa", pa.list_(pa.list_(pa.int32()))),
        ("st", _PAIR),
        ("sts", pa.list_(_PAIR)),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("mi", pa.map_(pa.int64(), pa.string())),
        ("k", pa.int32()),
        ("s", pa.string()),
        ("i", pa.int32()),
        ("d", pa.float64()),
        ("j", pa.string()),
    ]
)
_MOST, _LEAST, _NAN, _INF = 2**31 - 1, -(2**31), math.nan, math.inf
_ROWS: tuple[tuple[Any, ...], ...] = (
    (
        *([1, 2, None], [2, 5], [0.0, -0.0, _NAN], [-0.0], ["a", "ß", "🤦"], [[1], [2, None]]),
        *({"a": 1, "b": "x"}, [{"a": 1, "b": "x"}, {"a": None, "b": "y"}], [("a", 1), ("b", None)], [(1, "x")]),
        *(1, "a", 1, 0.0, '{"a": 1.50, "b": [1, {"c": "🤦"}]}'),
    ),
    (
        *([], [1], [-0.0, 0.0], [_NAN], [""], [None]),
        *({"a": None, "b": ""}, [], [], [(2, None), (1, "y")]),
        *(0, "b", 2, -0.0, "[1, 2, null]"),
    ),
    (None, [1], None, [0.0], None, None, None, None, None, None, 2, None, None, None, None),
    (
        *([3], None, [], None, [], []),
        *({"a": 3, "b": None}, [None], [("", 5)], []),
        *(-1, "", 3, _NAN, "{'a': 'it', \"b\": null}"),
    ),
    (
        *([_MOST, _LEAST, 0], [None, 0], [_NAN, _NAN, None, _INF], [], ["a", None, "a"], [[], [1]]),
        *({"a": None, "b": None}, [{"a": 2, "b": None}, {"a": 2, "b": "q"}, {"a": 1, "b": "z"}]),
        *([("ß", -1), ("a", 2)], [(3, "a")], None, "ß", _LEAST, 1.5, '{"a": 1'),
    ),
    (
        *([None], [None], [1.5], [None], ["b", "A"], [[3]]),
        *({"a": -1, "b": "z"}, [{"a": None, "b": None}, None], [("z", _MOST)], [(2**63 - 1, "q")]),
        *(3, "z", _MOST, 2.5, '{"a": {"a": true}, "a": 2}'),
    ),
    (
        *([1, 1, 2, 2], [], [None, -_INF], [2.5, -0.0], [None], [[1], [1], None]),
        *({"a": 1, "b": "x"}, [{"a": 1, "b": "x"}, {"a": 1, "b": "x"}], [("b", 3)], [(1, "z"), (0, "w")]),
        *(-2, "a", 0, -_INF, ""),
    ),
)


def table_of(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = [pa.array(range(len(rows)), pa.int32())]
    columns += [pa.array(list(c), f.type) for c, f in zip(zip(*rows, strict=True), list(SCHEMA)[1:], strict=True)]
    return pa.table(columns, schema=SCHEMA)


TABLE = table_of(_ROWS)


def lines_of(section: str) -> list[str]:
    """The expressions of one section of the fixture."""
    found: list[str] = []
    title = ""
    for line in (FIXTURES / "nested.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("# --- "):
            title = line.removeprefix("# --- ")
        elif line.strip() and not line.startswith("#") and title == section:
            found.append(line)
    assert found, section
    return found


def query_differences(session: SparkSession, queries: Sequence[str], table: pa.Table = TABLE) -> list[str]:
    """Where names, types or rows of whole queries over the table ``n`` differ from Spark's."""
    session.createDataFrame(table).coalesce(1).createOrReplaceTempView("n")
    found = []
    for text in queries:
        try:
            here = run_here(text, {"n": table})
        except duckdb.Error as error:
            # Numbers that are drawn may be too large for a sum: then they are so for Spark, too.
            if table is TABLE or not _spark_fails(session, text):
                found.append(f"{text}\n  here fails: {error}")
            continue
        there = run_spark(session, text)
        if (*here[:2], in_any_order(here[2])) != (*there[:2], in_any_order(there[2])):
            found.append(f"{text}\n  here:  {here}\n  spark: {there}")
    return found


def _spark_fails(session: SparkSession, text: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        run_spark(session, text)
    except PySparkException:
        return True
    return False


def name_differences(session: SparkSession, texts: Sequence[str]) -> list[str]:
    """Where Spark calls the column of an expression otherwise."""
    session.createDataFrame(TABLE).createOrReplaceTempView("n")
    found = []
    for text in texts:
        query = f"select {text} from n limit 0"
        here, there = run_here(query, {"n": TABLE})[:2], session.sql(query).schema
        if here != ([f.name for f in there], [f.dataType.simpleString() for f in there]):
            found.append(f"{text}\n  here:  {here}\n  spark: {there}")
    return found


def _list(element: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.lists(st.none() | element, max_size=4)


def _map(key: st.SearchStrategy[Any], value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.dictionaries(key, st.none() | value, max_size=3).map(lambda d: list(d.items()))


_INTS = st.sampled_from([0, 1, 2, 3, -1, _MOST, _LEAST])
_LONGS = st.sampled_from([0, 1, 2, 3, -1, 2**63 - 1, -(2**63)])
_DOUBLES = st.sampled_from([0.0, -0.0, _NAN, _INF, -_INF, 1.5, -2.0, 1e300])
_TEXTS = st.sampled_from(["", "a", "b", "A", "aa", "ß", "🤦", "a,b:c", "\n", "é"])
_PAIRS = st.fixed_dictionaries({"a": st.none() | _INTS, "b": st.none() | _TEXTS})
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3)) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
).map(json.dumps)


@st.composite
def _json_texts(draw: st.DrawFn) -> str:
    """JSON, sometimes with a character taken out, doubled or put in."""
    text = draw(_JSON)
    at = draw(st.integers(0, len(text)))
    change = draw(st.sampled_from(["none", "none", "none", "drop", "cut", "put"]))
    if change == "drop":
        return text[:at] + text[at + 1 :]
    if change == "cut":
        return text[:at]
    return text[:at] + draw(st.sampled_from(list("{}[],:\"' 1x"))) + text[at:] if change == "put" else text


_ROW = st.tuples(
    *(_list(_INTS), _list(_LONGS), _list(_DOUBLES), _list(_DOUBLES), _list(_TEXTS), _list(_list(_INTS))),
    *(st.none() | _PAIRS, _list(_PAIRS), _map(_TEXTS, _INTS), _map(_LONGS, _TEXTS)),
    *(st.none() | st.integers(-4, 4), st.none() | _TEXTS, st.none() | _INTS, st.none() | _DOUBLES),
    st.none() | _json_texts(),
)
tables = st.lists(_ROW, min_size=3, max_size=8).map(table_of)
