"""From a plan to a circuit: the one way in.

A plan is first put into a form that a circuit can follow (conditions near their tables, joins in an order that has
keys, a total order wherever rows are counted), then every different part of it becomes a piece of the circuit, once.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.errors import SchemaError, UnsupportedError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.planning import (
    aggregate,
    distinct,
    filter,  # noqa: A004
    generate,
    join,
    limit,
    match,
    project,
    reading,
    recursion,
    scan,
    set_operation,
    single,
    sort,
    values,
    window,
)
from headwater.incremental.planning.between import with_intervals
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.determinacy import determined
from headwater.incremental.planning.facts import with_facts
from headwater.incremental.planning.ranked import lowered
from headwater.incremental.planning.shape import Shapes
from headwater.incremental.planning.wide_keys import with_narrow_keys
from headwater.sql import plan as plans
from headwater.sql.nodes import Refused
from headwater.sql.plan import Plan
from headwater.sql.rewriting import prepared

__all__ = ["build"]

_FORMS: dict[type[Plan], Form] = {
    plans.Scan: scan.FORM,
    plans.Values: values.FORM,
    plans.Project: project.FORM,
    plans.Filter: filter.FORM,
    plans.Join: join.FORM,
    plans.Aggregate: aggregate.FORM,
    plans.Distinct: distinct.FORM,
    plans.SetOperation: set_operation.FORM,
    plans.Sort: sort.FORM,
    plans.Limit: limit.FORM,
    plans.Match: match.FORM,
    plans.Reference: reading.FORM,
    plans.Window: window.FORM,
    plans.Generate: generate.FORM,
    plans.Single: single.FORM,
    plans.Recursion: recursion.FORM,
}


def build(circuit: Circuit, plan: Plan, inputs: Mapping[str, Stream], *, any_rows: bool = False) -> Stream:
    """Put a plan into a circuit, and give the stream of its rows.

    Parameters
    ----------
    circuit
        the circuit of the inputs
    plan
        without subqueries in expressions: see `headwater.sql.rewriting`
    inputs
        the tables by `Scan.relation`
    any_rows
        is a LIMIT without an order allowed? It keeps the least rows by all columns

    Examples
    --------
    >>> import headwater as hw, pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> schema = pa.schema([("k", pa.string()), ("v", pa.int64())])
    >>> c = hw.Circuit("totals")
    >>> plan = parse_query("SELECT k, sum(v) AS total FROM t WHERE v > 0 GROUP BY k", lambda *_: schema)
    >>> build(c, plan, {"t": c.input("t", schema)}).output("totals")
    >>> c.step(t=pa.table({"k": ["a", "a", "b"], "v": [1, 2, -5]}))["totals"].to_arrow().to_pylist()
    [{'k': 'a', 'total': 3, '_weight': 1}]
    """
    names = [a.name for a in plan.output]
    plain = [n.lower() for n in names]
    if len(set(plain)) != len(names):
        raise SchemaError.duplicate_columns(
            sorted({n for n, p in zip(names, plain, strict=True) if plain.count(p) > 1})
        )
    shapes = Shapes()
    root = shapes.of(_ready(plan, any_rows=any_rows))
    root.need(set(range(len(names))))
    builder = Builder(circuit, inputs, _FORMS)
    builder.demand(shapes.all)
    rows = builder.rows(root)
    columns = [c for c in rows.columns if c is not None]
    assert len(columns) == len(names), "all columns of the answer are asked for"
    if columns == names == rows.stream.columns:
        return rows.stream
    answer = rows.stream.projected(list(zip(names, columns, strict=True)), label="answer", detail=", ".join(names))
    builder.named(root)
    return answer


def _ready(plan: Plan, *, any_rows: bool) -> Plan:
    """The plan after all rules that are made for circuits."""
    try:
        made = prepared(determined(plan, any_rows=any_rows))
    except Refused as refused:
        why = "a circuit computes subqueries as joins, and this one is none"
        raise UnsupportedError.operation(refused.what, why, refused.hint).about("select") from None
    return with_facts(with_intervals(lowered(with_narrow_keys(made))))
