"""Distinct: each row once, as long as it is there at all. All columns count, also those nobody reads above."""

from __future__ import annotations

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Computed, Rows, names_for
from headwater.incremental.planning.shape import Shape
from headwater.sql.plan import Attribute

__all__ = ["FORM", "exactly", "whole"]


def exactly(rows: Rows, output: tuple[Attribute, ...], *, compared: bool = False) -> Stream:
    """A stream of just the columns of an output, in its order; of a column that stands there twice, both.

    Rows that are ``compared`` have no negative zeros inside nested values.
    """
    columns = [c for c in rows.columns if c is not None]
    assert len(columns) == len(output), "a column of these rows was not asked for"
    scope = rows.scope(output)
    made: list[Computed] = [scope.nested_key(a.column) for a in output] if compared else [*columns]
    if made == rows.stream.columns:
        return rows.stream
    names = names_for(a.name for a in output)
    return rows.stream.projected(list(zip(names, made, strict=True)), label="columns", detail=", ".join(names))


def whole(shape: Shape) -> None:
    """Everything of the children is read."""
    for child in shape.children:
        child.need(set(range(len(child.plan.output))))


def _rows(builder: Builder, shape: Shape) -> Rows:
    stream = exactly(builder.child(shape), shape.plan.children[0].output, compared=True).distinct()
    return Rows(stream, tuple(stream.columns))


FORM = Form(whole, _rows)
