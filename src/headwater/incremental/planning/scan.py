"""Scan: a table is an input of the circuit; the columns that nobody reads are left out at once."""

from __future__ import annotations

from headwater.base.errors import NotFoundError, SchemaError
from headwater.base.schema import normalize_type
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Rows
from headwater.incremental.planning.shape import Shape
from headwater.sql.demands import narrowest
from headwater.sql.plan import Scan

__all__ = ["FORM"]


def _needs(_: Shape) -> None:
    pass


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Scan)
    stream = builder.inputs.get(plan.relation)
    if stream is None:
        raise NotFoundError.port("input", plan.relation, sorted(builder.inputs))
    known = {name.lower(): name for name in stream.columns}
    columns: list[str | None] = []
    places = sorted(shape.needed) or [narrowest([a.dtype for a in plan.columns])]
    for i, a in enumerate(plan.columns):
        if i not in places:
            columns.append(None)
            continue
        name = a.name if a.name in stream.columns else known.get(a.name.lower())
        if name is None:
            raise NotFoundError.column(a.name, stream.columns, where=f"input `{plan.relation}`")
        have = stream.schema.field(name).type
        if have != a.dtype and normalize_type(a.dtype) != have:
            raise SchemaError.type_clash(name, str(have), str(a.dtype), where=f"input `{plan.relation}`")
        columns.append(name)
    kept = [c for c in columns if c is not None]
    if len(kept) < len(stream.columns):
        stream = stream.projected([(c, c) for c in kept], label="columns", detail=f"{plan.name}: {', '.join(kept)}")
    return Rows(stream, tuple(columns))


FORM = Form(_needs, _rows)
