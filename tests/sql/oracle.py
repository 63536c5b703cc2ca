"""A query in DuckDB through our plans, and in Spark as it stands: names, types and rows have to be the same."""

from __future__ import annotations

import atexit
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from headwater.base.schema import spark_type
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.plan import Plan
from headwater.sql.query import parse_query
from headwater.sql.udfs import install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).parent / "fixtures"
Tables = Mapping[str, pa.Table]
_MOST_OPEN = 8


def plan_of(text: str, tables: Tables, parameters: Any = None) -> Plan:
    return parse_query(text, lambda name, version, timestamp: tables[name.lower()].schema, parameters)


# Opening a database costs more than most of these queries do, so the last few stay open; the tables are held, for their ids.
_open: dict[tuple[tuple[str, int], ...], tuple[duckdb.DuckDBPyConnection, Tables]] = {}


def answer_of(plan: Plan, tables: Tables) -> pa.Table:
    """A plan's rows in DuckDB."""
    key = tuple((name, id(table)) for name, table in tables.items())
    if key not in _open:
        if len(_open) == _MOST_OPEN:
            _open.pop(next(iter(_open)))[0].close()
        con = duckdb.connect(":memory:", config={"threads": 1})
        con.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            con.register(name, table)
        _open[key] = con, dict(tables)
    sql = to_duckdb(plan)
    install(_open[key][0], sql)
    return _open[key][0].sql(sql).to_arrow_table()


@atexit.register
def _close() -> None:
    while _open:
        _open.popitem()[1][0].close()


def run_here(
    text: str, tables: Tables, parameters: Any = None
) -> tuple[list[str], list[str], list[tuple[object, ...]]]:
    """Names, types and rows of our answer."""
    plan = plan_of(text, tables, parameters)
    answer = answer_of(plan, tables)
    types = ["void" if pa.types.is_null(f.type) else spark_type(f.type).replace("`", "") for f in plan.schema]
    columns = [_values(c, f.type) for c, f in zip(answer.columns, plan.schema, strict=True)]
    return plan.schema.names, types, list(zip(*columns, strict=True))


def run_spark(session: SparkSession, text: str) -> tuple[list[str], list[str], list[tuple[object, ...]]]:
    """Names, types and rows of Spark's answer."""
    frame = session.sql(text)
    names = [f.name for f in frame.schema]
    types = [re.sub(r"struct<.*", lambda m: m.group(), f.dataType.simpleString()) for f in frame.schema]
    columns = [_values(c, None) for c in frame.toArrow().columns]
    return names, types, list(zip(*columns, strict=True))


_answered: dict[str, tuple[list[str], list[str], list[tuple[object, ...]]]] = {}


def ask_spark_once(session: SparkSession, text: str) -> tuple[list[str], list[str], list[tuple[object, ...]]]:
    """As `run_spark`, for texts that several files ask of the same tables: those of test_queries."""
    if text not in _answered:
        _answered[text] = run_spark(session, text)
    return _answered[text]


def _values(column: pa.ChunkedArray, dtype: pa.DataType | None) -> list[object]:
    if dtype is not None and column.type != dtype and not pa.types.is_null(dtype):
        assert pa.types.is_nested(dtype) or column.type == dtype, f"DuckDB gave {column.type}, not {dtype}"
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [comparable(v) for v in column.to_pylist()]


def comparable(value: object) -> object:
    """A value that compares and sorts: floats by 12 digits, since sums of them have no order."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return tuple(map(comparable, value))
    if isinstance(value, dict):
        return tuple((k, comparable(v)) for k, v in value.items())
    return value


def in_any_order(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(rows, key=repr)


def sections(name: str) -> dict[str, str]:
    """A fixture file of ``-- title`` lines and the queries below them."""
    found: dict[str, list[str]] = {}
    title = None
    for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"-- (q\d+)", line):
            title = match[1]
            found[title] = []
        elif title is not None:
            found[title].append(line)
    return {k: "\n".join(v).strip() for k, v in found.items()}
