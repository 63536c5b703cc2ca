"""Match: MATCH_RECOGNIZE by searching the partitions that a change touches, or stretches of them, once more.

With WITHIN a match lies between neighbours that are not farther apart than that, and nothing outside of such a stretch
can change it. So a change costs its stretch, unless something looks farther: PREV and NEXT, the start and the end of
the partition, and the numbers of matches.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.layout import Layout
from headwater.incremental.operators.match import Matches
from headwater.incremental.operators.reach import Reach
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.order import order_columns
from headwater.incremental.planning.partition import partitioned
from headwater.incremental.planning.rows import Rows, Scope, line_of, names_for
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.sql.nodes import Attribute, Column
from headwater.sql.plan import Match, Scan
from headwater.sql.plan.rebuilding import with_expressions

__all__ = ["FORM"]


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Match)
    shape.children[0].need_keys(plan.child.output, keys_of(*plan.expressions))


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Match)
    child = builder.child(shape)
    scope = child.scope(plan.child.output)
    keyed, keys = partitioned(scope, plan.partition)
    stream, order = order_columns(scope, plan.order, keyed)
    names = names_for([a.name for a in plan.output])
    schema = pa.schema([pa.field(name, a.dtype) for name, a in zip(names, plan.output, strict=True)])
    match, reach = _renamed(plan, scope), _reach(plan)
    sql = line_of(plan, scope)
    read = sorted({scope.names[key] for key in plan.read})
    circuit = builder.circuit
    arranged = circuit.arranged(stream.vertex, keys, order, columns=read, alone=True)
    vertex = circuit.add(lambda s: Matches(s, match, Layout(schema), reach=reach, sql=sql), [arranged])
    return Rows(Stream(circuit, vertex), tuple(names))


def _renamed(plan: Match, scope: Scope) -> Match:
    """The match over the names of the stream's columns."""

    def attribute(a: Attribute) -> Attribute:
        return replace(a, key=scope.names[a.key])

    rows = Scan("rows", None, None, tuple(attribute(a) for a in plan.child.output if a.key in plan.read))
    made = with_expressions(plan, scope.renamed)
    assert isinstance(made, Match)
    return replace(made, child=rows, kept=tuple(map(attribute, plan.kept)), rest=tuple(map(attribute, plan.rest)))


def _reach(plan: Match) -> Reach:
    """What a change can touch."""
    if plan.length is None or not plan.is_local or not isinstance(plan.order[0].node, Column):
        return Reach.whole()
    return replace(Reach.chain(plan.length), peers=1)


FORM = Form(_needs, _rows)
