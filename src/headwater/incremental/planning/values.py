"""Values: rows written in the query come with the first step, and never again."""

from __future__ import annotations

import pyarrow as pa

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.constant import Constant
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Rows, line_of, names_for
from headwater.incremental.planning.shape import Shape
from headwater.sql.plan import Values
from headwater.sql.vectorised import Program

__all__ = ["FORM"]

_ONE = "\0one"


def _needs(_: Shape) -> None:
    pass


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Values)
    if plan.columns:
        nothing = pa.schema([])
        columns = [
            pa.concat_arrays([Program(row[i], nothing).run([], 1).to_arrow() for row in plan.rows])
            if plan.rows
            else pa.array([], a.dtype)
            for i, a in enumerate(plan.columns)
        ]
        names = names_for(a.name for a in plan.columns)
        table = pa.table(columns, schema=pa.schema([pa.field(n, c.type) for n, c in zip(names, columns, strict=True)]))
    else:
        table, names = pa.table({_ONE: pa.array([True] * max(1, len(plan.rows)))}), []
    first = iter([True])
    vertex = builder.circuit.add(lambda: Constant(table, sql=line_of(plan), first_shard=next(first, False)), [])
    return Rows(Stream(builder.circuit, vertex), tuple(names))


FORM = Form(_needs, _rows)
