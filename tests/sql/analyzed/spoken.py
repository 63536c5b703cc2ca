"""The queries whose plans are kept: TPC-H's and Nexmark's, by name, with the tables they read."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyarrow as pa
from tests.sql.oracle import answer_of, comparable, in_any_order, sections
from tests.sql.tpch import tables as tpch_tables

from headwater.sql.plan import Plan
from headwater.testing.nexmark import tables as nexmark_tables

HERE = Path(__file__).parent
NEXMARK = HERE.parents[1] / "incremental" / "nexmark"
Rows = list[tuple[object, ...]]


@cache
def nexmark() -> dict[str, pa.Table]:
    """Nexmark's tables, with enough rows for every query to find some."""
    return nexmark_tables(4_000, seed=3)


@cache
def queries() -> dict[str, tuple[str, Mapping[str, pa.Table]]]:
    """Text and tables of each query."""
    found: dict[str, tuple[str, Mapping[str, pa.Table]]] = {}
    for name, text in sections("tpch.sql").items():
        found[f"tpch_{name}"] = text, tpch_tables()
    bids = nexmark()
    for number in range(23):
        found[f"nexmark_q{number}"] = (NEXMARK / f"q{number}.sql").read_text("utf-8"), bids
    return found


def golden(name: str) -> Path:
    """Where the readable plan of a query is kept."""
    return HERE / "golden" / f"{name}.txt"


def stored(name: str) -> str:
    """Spark's analyzed plan of a query, as it was kept."""
    return gzip.decompress((HERE / "json" / f"{name}.json.gz").read_bytes()).decode()


def keep(name: str, json_text: str, dump: str) -> None:
    """Keep both."""
    (HERE / "json" / f"{name}.json.gz").write_bytes(gzip.compress(json_text.encode(), mtime=0))
    golden(name).write_text(dump, encoding="utf-8")


def rows_of(plan: Plan, tables: Mapping[str, pa.Table]) -> Rows:
    """The plan's rows, in DuckDB, in an order of their own."""
    return rows_in_order(answer_of(plan, tables))


def rows_in_order(table: pa.Table) -> Rows:
    """Rows that can be compared."""
    columns = [[comparable(v) for v in _plain(c).to_pylist()] for c in table.columns]
    return in_any_order(list(zip(*columns, strict=True)))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
