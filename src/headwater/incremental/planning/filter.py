"""Filter: the rows for which a condition is true; linear."""

from __future__ import annotations

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.filter import Filter as FilterNode
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.ranked import first_rows
from headwater.incremental.planning.rows import Rows
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.sql.plan import Filter
from headwater.sql.vectorised import Program

__all__ = ["FORM", "filtered"]


def filtered(stream: Stream, program: Program, detail: str) -> Stream:
    """The rows of a stream for which a program is true."""
    vertex = stream.circuit.add(lambda s: FilterNode(s, program, detail=detail), [stream.vertex])
    vertex.placed_by = stream.vertex.placed_by
    vertex.marks = stream.vertex.marks
    return Stream(stream.circuit, vertex)


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Filter)
    shape.children[0].need(shape.needed)
    shape.children[0].need_keys(plan.child.output, keys_of(plan.condition))


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Filter)
    child = first_rows(builder, shape) or builder.child(shape)
    scope = child.scope(plan.child.output)
    stream = filtered(child.stream, scope.program(plan.condition), scope.text(plan.condition))
    return Rows(stream, child.columns)


FORM = Form(_needs, _rows)
