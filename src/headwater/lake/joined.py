"""Expressions over two tables: rows side by side, or joined on a condition, by DuckDB over Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from headwater.sql import expressions
from headwater.sql.expressions import Expression, quote_identifier
from headwater.sql.nodes import Column
from headwater.sql.udfs import install

__all__ = ["evaluate_beside", "join"]


def evaluate_beside(expression: Expression, tables: Mapping[str, pa.Table]) -> pa.ChunkedArray:
    """One value a row, over tables of one length whose rows belong together."""
    if isinstance(expression.node, Column) and len(expression.node.path) == 1 and expression.node.alias is not None:
        return tables[expression.node.alias][expression.node.path[0]]
    aliases = sorted({alias for alias, _ in expression.columns if alias is not None})
    if len(aliases) < 2:
        return expressions.evaluate(expression, tables[aliases[0]] if aliases else next(iter(tables.values())))
    # One struct a side, so that rows stay beside each other by construction; `t`.`id` is then a field of a struct.
    sides = {}
    for alias in aliases:
        table = tables[alias].select(sorted({n for a, n in expression.columns if a == alias})).combine_chunks()
        arrays = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns]
        sides[alias] = pa.StructArray.from_arrays(arrays, fields=list(table.schema))
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("both_sides", pa.table(sides))
        install(con, expression.duckdb)
        try:
            column = con.sql(f"SELECT {expression.duckdb} AS value FROM both_sides").to_arrow_table().column(0)
        except duckdb.Error as e:
            raise expressions.failure(expression.text, e) from None
    return column if column.type == expression.dtype else column.cast(expression.dtype)


def join(on: Expression, tables: Mapping[str, pa.Table], output: Sequence[tuple[str, str]]) -> pa.Table:
    """The ``output`` columns of all pairs of rows that meet ``on``."""
    names: dict[str | None, str] = {alias: f"side_{i}" for i, alias in enumerate(tables)}
    shown = ", ".join(f"{names[alias]}.{quote_identifier(column)}" for alias, column in output)
    first, second = names.values()
    with duckdb.connect(":memory:") as con:
        con.execute("SET TimeZone = 'UTC'")
        for alias, table in tables.items():
            con.register(names[alias], table)
        condition = on.duckdb_for(dict(names))
        install(con, condition)
        try:
            return con.sql(f"SELECT {shown} FROM {first} JOIN {second} ON {condition}").to_arrow_table()
        except duckdb.Error as e:
            raise expressions.failure(on.text, e) from None
