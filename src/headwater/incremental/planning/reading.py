"""Reference: a reading of a common table is the stream of its definition, which is built once."""

from __future__ import annotations

from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Rows
from headwater.incremental.planning.shape import Shape

__all__ = ["FORM"]


def _needs(shape: Shape) -> None:
    shape.children[0].need({shape.places[i] for i in shape.needed})


def _rows(builder: Builder, shape: Shape) -> Rows:
    definition = builder.child(shape)
    return Rows(definition.stream, tuple(definition.columns[p] for p in shape.places))


FORM = Form(_needs, _rows)
