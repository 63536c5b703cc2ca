"""Aggregates as text: ``sum(amount * 2) / count(*)`` over the rows of a key, made of nodes.

The text is read as the select list of a GROUP BY query, so it means what it means in Spark. The plan has three floors,
and so has what is built: the arguments are computed for each row, the aggregates are kept for each key, and what is
made of them is computed for each row of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.base.spark_text import quoted_name
from headwater.incremental.aggregates.aggregation import Aggregation, Linear
from headwater.incremental.aggregates.calls import aggregation_of
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.recipes.present import present
from headwater.incremental.recipes.row_stream import S
from headwater.sql import plan as plans
from headwater.sql.nodes import AggregateCall, Column, Named, Node
from headwater.sql.query import parse_query
from headwater.sql.vectorised import Program, compile_expression

__all__ = ["aggregated", "kept"]


def aggregated(stream: S, keys: Sequence[str], named: Mapping[str, str]) -> S:
    """One row for each key: its columns, and the values that the texts say."""
    items = [*(quoted_name(k) for k in keys), *(f"{text} AS {quoted_name(name)}" for name, text in named.items())]
    by = f" GROUP BY {', '.join(quoted_name(k) for k in keys)}" if keys else ""
    plan = parse_query(f"SELECT {', '.join(items)} FROM input{by}", lambda *_: stream.schema)
    aggregate = plan.child if isinstance(plan, plans.Project) else plan
    nested = any(True for node in (plan, aggregate) for _ in node.subqueries())
    if (
        nested
        or not isinstance(plan, plans.Project)
        or not isinstance(aggregate, plans.Aggregate)
        or not isinstance(aggregate.child, plans.Scan)
    ):
        what = f"agg({', '.join(named.values())})"
        raise UnsupportedError.operation(what, "it is more than aggregates of rows", "aggregate in two stages")
    rows = _Rows(stream, [a.key for a in aggregate.child.output])
    wanted = plan.items[len(keys) :]
    # What is given as it is has its name from the beginning.
    names = {i.node.path[0]: i.attribute.name for i in reversed(wanted) if isinstance(i.node, Column)}
    chosen = [rows.aggregation(n, names.get(n.attribute.key, n.attribute.key)) for n in aggregate.aggregates]
    grouped = kept(rows.projected(), keys, chosen, sql=", ".join(f"{t} AS {n}" for n, t in named.items()))
    if [a.name for a in chosen] == list(named):
        return grouped
    renamed = pa.schema([f.with_name(a.key) for f, a in zip(grouped.schema, aggregate.output, strict=True)])
    columns: list[tuple[str, str | Program]] = []
    for item in wanted:
        node = item.node
        if isinstance(node, Column):
            columns.append((item.attribute.name, grouped.schema.names[renamed.get_field_index(node.path[0])]))
        else:
            columns.append((item.attribute.name, Program(node, renamed, named[item.attribute.name])))
    assert [name for name, _ in columns] == list(named), "the select list is as it was written"
    return grouped.projected([*((k, k) for k in keys), *columns], label="finish", detail=", ".join(named))


def kept(stream: S, keys: Sequence[str], chosen: Sequence[Aggregation], *, sql: str = "") -> S:
    """The node that keeps aggregates by key, and what lets its state go behind a watermark."""
    if not all(isinstance(a, Linear) and not a.distinct for a in chosen):
        stream = present(stream)
    circuit = stream.circuit
    first = iter([True])
    vertex = circuit.add(
        lambda s: Aggregate(s, keys, chosen, sql=sql, first_shard=next(first, False)), [stream.vertex], by=[keys]
    )
    vertex.placed_by = circuit.placement(stream.vertex, keys)
    vertex.marks = {k: m for k, m in stream.vertex.marks.items() if k in keys}
    return stream.at(circuit.forgetting(vertex))


@dataclass
class _Rows(Generic[S]):
    """The rows that are aggregated: columns of the stream, and those computed for arguments."""

    stream: S
    keys: list[str]
    computed: dict[str, Program] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        more = [pa.field(n, p.dtype) for n, p in self.computed.items()]
        return pa.schema([*self.stream.schema, *more])

    def column(self, node: Node) -> str:
        """The name of the column that holds an argument."""
        if isinstance(node, Column) and len(node.path) == 1:
            return self.stream.columns[self.keys.index(node.path[0])]
        renamed = pa.schema([f.with_name(k) for f, k in zip(self.stream.schema, self.keys, strict=True)])
        name = f"\0argument {len(self.computed)}"
        self.computed[name] = compile_expression(node, renamed)
        return name

    def aggregation(self, item: Named, name: str) -> Aggregation:
        """The aggregate of a call, under a name."""
        call = item.node
        assert isinstance(call, AggregateCall), "only aggregates are kept"
        return aggregation_of(call, name, self.column, lambda: self.schema)

    def projected(self) -> S:
        """The stream with the computed columns."""
        if not self.computed:
            return self.stream
        columns: list[tuple[str, str | Program]] = [(c, c) for c in self.stream.columns]
        columns += list(self.computed.items())
        detail = ", ".join(p.text for p in self.computed.values())
        return self.stream.projected(columns, label="arguments", detail=detail)
