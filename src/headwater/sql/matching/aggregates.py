"""Aggregates over the rows of matches, computed by DuckDB as any aggregate of a query is.

RUNNING ones are a window over the labels of each match, FINAL ones a group. So what Spark's aggregates mean is said in
one place, the catalogue, for patterns too.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.evaluation import run_sql
from headwater.sql.matching.places import Places
from headwater.sql.nodes import (
    AggregateCall,
    Attribute,
    Column,
    Frame,
    Named,
    Node,
    Ordering,
    Plan,
    Refused,
    WindowCall,
    walk,
)
from headwater.sql.operators import logic
from headwater.sql.plan import Aggregate, Scan, Window
from headwater.sql.plan.text import expression_text
from headwater.sql.row_patterns.calls import RowAggregate

__all__ = ["aggregated"]

_MATCH, _PLACE, _MEMBER = "match", "place", "member"


def aggregated(aggregate: RowAggregate, places: Places) -> pa.Array:
    """The aggregate for each row of the answer."""
    matches = places.matches
    lengths = matches.lengths
    rows = places.entry_rows
    read = sorted(
        {
            n.path[0]
            for a in (*aggregate.args, aggregate.where)
            if a is not None
            for n in walk(a)
            if isinstance(n, Column)
        }
    )
    at, _ = places.members(aggregate.variables)
    member = np.zeros(len(rows), bool)
    member[at] = True
    columns = {
        _MATCH: pa.array(np.repeat(np.arange(len(lengths)), lengths)),
        _PLACE: pa.array(np.arange(len(rows))),
        _MEMBER: pa.array(member),
        **{name: places.rows.taken(name, rows) for name in read},
    }
    table = pa.table(columns)
    ends = matches.offsets[places.of] + places.upto
    whole = aggregate.final or bool((ends == matches.offsets[places.of + 1]).all())
    computed = _by_match(aggregate, table) if whole else _so_far(aggregate, table)
    nothing = _by_match(aggregate, table.slice(0, 0), grouped=False).column("value")
    values = pa.chunked_array([*computed.column("value").chunks, *nothing.chunks], aggregate.dtype)
    where = np.full(len(lengths) if whole else len(rows) + 1, len(computed), np.int64)
    where[computed.column(_MATCH if whole else _PLACE).to_numpy()] = np.arange(len(computed))
    if whole:
        return values.take(pa.array(where[places.of])).combine_chunks()
    wanted = np.where(places.upto > 0, ends - 1, len(rows))
    return values.take(pa.array(where[wanted])).combine_chunks()


def _scan(table: pa.Table) -> tuple[Scan, dict[str, Attribute]]:
    made = {f.name: Attribute(f.name, f.name, f.type) for f in table.schema}
    return Scan("labels", None, None, tuple(made.values())), made


def _condition(aggregate: RowAggregate, member: Attribute) -> Node:
    return member.column if aggregate.where is None else logic("and", [member.column, aggregate.where])


def _by_match(aggregate: RowAggregate, table: pa.Table, *, grouped: bool = True) -> pa.Table:
    scan, columns = _scan(table)
    call = AggregateCall(
        aggregate.op, aggregate.args, aggregate.dtype, aggregate.distinct, _condition(aggregate, columns[_MEMBER])
    )
    keys = (Named(columns[_MATCH], columns[_MATCH].column),) if grouped else ()
    plan = Aggregate(scan, keys, (Named(Attribute("value", "value", aggregate.dtype), call),))
    return _computed(plan, table, aggregate)


def _so_far(aggregate: RowAggregate, table: pa.Table) -> pa.Table:
    scan, columns = _scan(table)
    call = WindowCall(
        aggregate.op,
        aggregate.args,
        aggregate.dtype,
        (columns[_MATCH].column,),
        (Ordering(columns[_PLACE].column),),
        Frame("rows", None, 0),
        aggregate.distinct,
        _condition(aggregate, columns[_MEMBER]),
    )
    plan = Window(scan, (Named(Attribute("value", "value", aggregate.dtype), call),))
    return _computed(plan, table, aggregate)


def _computed(plan: Plan, table: pa.Table, aggregate: RowAggregate) -> pa.Table:
    text = expression_text(AggregateCall(aggregate.op, aggregate.args, aggregate.dtype, aggregate.distinct))
    try:
        sql = to_duckdb(plan)
    except Refused as refused:
        raise ExpressionError.refused(text, refused.what, refused.hint) from None
    found = run_sql(sql, {"labels": table}, text)
    schema = pa.schema([pa.field(f.name, f.type) for f in plan.schema])
    return found.cast(schema)
