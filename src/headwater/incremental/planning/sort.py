"""Sort: the rows of a view have no order, so an ORDER BY without LIMIT changes nothing;
it stands in the circuit as a note.
"""

from __future__ import annotations

from headwater.incremental.operators.note import Note
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Rows, line_of
from headwater.incremental.planning.shape import Shape

__all__ = ["FORM"]


def _needs(shape: Shape) -> None:
    shape.children[0].need(shape.needed)


def _rows(builder: Builder, shape: Shape) -> Rows:
    child = builder.child(shape)
    line = line_of(shape.plan, child.scope(shape.plan.children[0].output))
    noted = child.stream._lifted(lambda s: Note(s, label="sort", detail=f"{line}: left out, rows have no order"))
    noted.vertex.placed_by = child.stream.vertex.placed_by
    return Rows(noted, child.columns)


FORM = Form(_needs, _rows)
