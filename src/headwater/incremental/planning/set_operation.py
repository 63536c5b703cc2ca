"""Set operations: UNION ALL is the sum of streams, the others weigh each row by how often both sides have it."""

from __future__ import annotations

import pyarrow as pa

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.distinct import exactly, whole
from headwater.incremental.planning.rows import Rows, names_for
from headwater.incremental.planning.shape import Shape
from headwater.sql.plan import SetOperation

__all__ = ["FORM"]


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, SetOperation)
    if plan.kind == "union" and plan.every:
        for child in shape.children:
            child.need(set(shape.needed) or {0})
    else:
        whole(shape)


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, SetOperation)
    if plan.kind == "union" and plan.every:
        return _sum(builder, shape, plan)
    names = names_for(a.name for a in plan.columns)
    left, right = (
        exactly(builder.rows(c), p.output, compared=True) for c, p in zip(shape.children, plan.children, strict=True)
    )
    left, right = _together([left, right], names)
    if plan.kind == "union":
        stream = left.plus(right).distinct()
    elif plan.kind == "intersect":
        stream = left.intersect(right, all=plan.every)
    else:
        stream = left.except_(right, all=plan.every)
    return Rows(stream, tuple(stream.columns))


def _sum(builder: Builder, shape: Shape, plan: SetOperation) -> Rows:
    places = sorted(shape.needed) or [0]
    names = names_for(plan.columns[i].name for i in places)
    sides = []
    for child in shape.children:
        rows = builder.rows(child)
        columns = [rows.columns[i] for i in places]
        given = [c for c in columns if c is not None]
        assert len(given) == len(places), "a column of these rows was not asked for"
        stream = rows.stream
        if given != stream.columns:
            stream = stream.projected(list(zip(names, given, strict=True)), label="columns", detail=", ".join(names))
        sides.append(stream)
    first, *others = _together(sides, names)
    stream = first.plus(*others)
    called = dict(zip(places, names, strict=True))
    return Rows(stream, tuple(called.get(i) for i in range(len(plan.columns))))


def _together(sides: list[Stream], names: list[str]) -> list[Stream]:
    """The sides under the same names; a column is nullable if it is on one of them."""
    nullable = [any(s.schema.field(i).nullable for s in sides) for i in range(len(names))]
    schema = pa.schema(
        [pa.field(n, f.type, nullable=m) for n, f, m in zip(names, sides[0].schema, nullable, strict=True)]
    )
    return [s if s.schema.equals(schema) else s._relabelled(schema) for s in sides]


FORM = Form(_needs, _rows)
