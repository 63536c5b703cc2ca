"""SQL texts of relational operators: read on the driver, checked for what they are, computed over the columns they
read.

The problem: a user's expression is one row's or one group's affair, and only because it says so: ``sum(v)`` among plain
columns would make one row of a whole table, a window function or a subquery would answer for the rows that happen to be
in one task. And a table may have thousands of columns of any type, of which a text reads two. The idea: the plan of the
text says both. `of_rows` takes what is a projection of its rows, `of_groups` what is one aggregation of them,
everything else is refused with its reason; tasks hand DuckDB the columns that the plan reads, and the others never
leave Arrow.

Invariants: `of_rows` gives one row for each row, in the same order. Nothing here looks at more rows than it is handed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, UnsupportedError
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.lineage import lineage
from headwater.sql.plan import Aggregate, Plan, Project, Scan
from headwater.sql.query import parse_query
from headwater.timeseries.querying import RowsQuery, quoted, select_list
from headwater.timeseries.rows import Rows

__all__ = ["RowsText", "new_names", "of_groups", "of_rows"]

_BY_ORDER = {"first": "min_by", "last": "max_by", "first_value": "min_by", "last_value": "max_by"}


@dataclass(frozen=True, slots=True)
class RowsText:
    """A query over ``rows``, and the columns of them that it reads."""

    query: RowsQuery
    reads: tuple[str, ...]
    stand_in: str
    """The column whose place something takes where none is read: rows are counted by it."""
    once: bool
    """Whether it reads the rows once, so that they can stream through."""

    def run(self, rows: pa.Table) -> pa.Table:
        """Compute it over a table."""
        return self.query.run({"rows": self._read(rows)})

    def stream(self, rows: Rows) -> pa.Table:
        """Compute it over all rows; where it reads them once, without holding them."""
        if not self.once:
            return self.run(rows.whole())
        schema = self._read(rows.schema.empty_table()).schema
        batches: Iterator[pa.RecordBatch] = (b for table in rows for b in self._read(table).cast(schema).to_batches())
        # RowsQuery hands its tables to DuckDB, which takes a reader as well.
        reader: Any = pa.RecordBatchReader.from_batches(schema, batches)
        return self.query.run({"rows": reader})

    def _read(self, rows: pa.Table) -> pa.Table:
        if self.reads:
            return rows.select(list(self.reads))
        return pa.table({self.stand_in: pa.array(np.zeros(rows.num_rows, np.int8))})


def of_rows(columns: Mapping[str, str], schema: pa.Schema, shown: str | None = None) -> RowsText:
    """Expressions of one row, by the names they get.

    >>> text = of_rows({"twice": "v * 2"}, pa.schema([("v", pa.int64()), ("w", pa.int64())]))
    >>> text.reads, text.run(pa.table({"v": [1, 2], "w": [0, 0]})).to_pydict()
    (('v',), {'twice': [2, 4]})
    """
    text = f"SELECT {select_list((), columns)} FROM rows"
    plan = _plan(text, schema)
    _as_asked(plan, list(columns), shown or text)
    if not (isinstance(plan, Project) and isinstance(plan.child, Scan)) or next(plan.subqueries(), None) is not None:
        raise UnsupportedError.operation(
            shown or text,
            "an expression here is computed for each row by itself, without aggregates, windows, "
            "subqueries and generators",
            "aggregate with agg() or group(…).agg(), look at neighbours with the ordered methods, and join "
            "other rows first",
        )
    return _text(plan, text, shown)


def of_groups(keys: Sequence[str], columns: Mapping[str, str], schema: pa.Schema, shown: str | None = None) -> RowsText:
    """Keys of groups, and aggregates of their rows by the names they get; without keys, of all rows.

    >>> text = of_groups(["k"], {"n": "count(*)"}, pa.schema([("k", pa.string()), ("v", pa.int64())]))
    >>> text.run(pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]})).sort_by("k").to_pylist()
    [{'k': 'a', 'n': 2}, {'k': 'b', 'n': 1}]
    """
    grouped = f" GROUP BY {', '.join(map(quoted, keys))}" if keys else ""
    text = f"SELECT {select_list(keys, columns)} FROM rows{grouped}"
    plan = _plan(text, schema)
    _as_asked(plan, [*keys, *columns], shown or text)
    found = list(plan.walk())
    aggregates = [p for p in found if isinstance(p, Aggregate)]
    plain = all(isinstance(p, Project | Aggregate | Scan) and next(p.subqueries(), None) is None for p in found)
    if len(aggregates) != 1 or not plain:
        raise UnsupportedError.operation(
            shown or text,
            "what is asked of a group is made of its aggregates only, without windows, subqueries and generators",
            "write expressions like `sum(a) / count(*)`; look at neighbours with the ordered methods",
        )
    for item in aggregates[0].aggregates:
        op = str(getattr(item.node, "op", ""))
        if op in _BY_ORDER:
            raise UnsupportedError.operation(
                f"{op}()",
                "the rows of a group have no order, so its answer would be another one at each run",
                f"say by what: {_BY_ORDER[op]}(value, time)",
            )
    return _text(plan, text, shown)


def _as_asked(plan: Plan, names: Sequence[str], text: str) -> None:
    # A text with a bracket too many can be read as two expressions.
    if plan.schema.names != list(names):
        raise InputError.bad_argument("expression", text, "one expression for each name")


def _plan(text: str, schema: pa.Schema) -> Plan:
    def schema_of(name: str, *_: Any) -> pa.Schema:
        if name.lower() != "rows":
            raise NotFoundError.table(name, ["rows"], "the stream")
        return schema

    return parse_query(text, schema_of)


def _text(plan: Plan, text: str, shown: str | None) -> RowsText:
    found = lineage(plan)
    sources = found.conditions.union(*(c.sources for c in found.columns))
    reads = {source.name for source in sources}
    sql = to_duckdb(plan)
    nullable = pa.schema([f.with_nullable(True) for f in plan.schema])
    names = [a.name for p in plan.walk() if isinstance(p, Scan) for a in p.columns]
    return RowsText(
        RowsQuery(shown or text, sql, nullable, ("rows",)),
        tuple(dict.fromkeys(n for n in names if n in reads)),
        names[0],
        sql.count('"rows"') == 1,
    )


def new_names(names: Iterable[str], taken: Iterable[str], argument: str) -> None:
    """Refuse names that are there already or come twice; case does not tell columns apart."""
    seen = {name.lower() for name in taken}
    for name in names:
        if name.lower() in seen:
            raise InputError.bad_argument(
                argument, name, "a name that no other column has (case does not tell them apart)"
            )
        seen.add(name.lower())
