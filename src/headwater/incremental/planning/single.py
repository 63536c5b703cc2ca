"""Single: the rows as they are, with a count for each key beside them that must not become two."""

from __future__ import annotations

from headwater.incremental.aggregates.linear import CountRows
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.single import Single as SingleNode
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Rows, line_of
from headwater.incremental.planning.shape import Shape
from headwater.incremental.recipes.aggregates import kept
from headwater.sql.plan import Single

__all__ = ["FORM"]


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Single)
    shape.children[0].need(shape.needed)
    shape.children[0].need_keys(plan.child.output, {a.key for a in plan.keys})


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Single)
    child = builder.child(shape)
    scope = child.scope(plan.child.output)
    keys = list(dict.fromkeys(scope.names[a.key] for a in plan.keys))
    sql = line_of(plan, scope)
    counts = kept(child.stream, keys, [CountRows("\0rows")], sql=sql)
    vertex = builder.circuit.add(
        lambda a, b: SingleNode(a, b, sql=sql),
        [child.stream.vertex, counts.vertex],
        by=[keys, None],
        place=[counts.vertex.placed_by, None],
    )
    return Rows(Stream(builder.circuit, vertex), child.columns)


FORM = Form(_needs, _rows)
