"""Recursion: a fixpoint of the circuit. What does not read the recursion's own rows is computed once, outside.

SQL computes the step over the rows that came last, again and again. A circuit computes X = base + step(X) until nothing
changes. Both are the same where the step is linear in X: made of conditions, projections, explodes, unions and joins
with other tables, in which X stands once. Then the rows so far are the sum of all rounds. Anything else (an aggregate
of X, X joined with itself) is refused. UNION ALL counts the ways in which a row comes about; UNION keeps each row once,
so a cycle comes to an end.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.recursion import recursive
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.distinct import exactly, whole
from headwater.incremental.planning.rows import Rows, names_for
from headwater.incremental.planning.shape import Shape
from headwater.sql.plan import Filter, Generate, Join, Project, Recursion, Reference, SetOperation, Sort

__all__ = ["FORM"]

_MOST = 100_000
_LEFT_ONLY = ("left", "semi", "anti")


def _dependent(step: Shape, name: str) -> list[Shape]:
    """The shapes of the step that read the recursion, each once."""
    found: dict[int, Shape] = {}
    pending = [step]
    while pending:
        shape = pending.pop()
        if name in shape.variables and shape.number not in found:
            found[shape.number] = shape
            pending.extend(shape.children)
    return list(found.values())


def _check_linear(shape: Shape, name: str) -> None:
    plan = shape.plan
    reading = [name in c.variables for c in shape.children]
    if isinstance(plan, Project | Filter | Generate | Reference | Sort):
        return
    if isinstance(plan, SetOperation) and plan.kind == "union" and plan.every:
        return
    if isinstance(plan, Join) and sum(reading) == 1:
        if plan.kind in ("inner", "cross"):
            return
        if (plan.kind in _LEFT_ONLY and reading[0]) or (plan.kind == "right" and reading[1]):
            return
    what = f"{type(plan).__name__.lower()} of the recursion's own rows"
    why = "a step has to be linear: conditions, projections, and joins with other tables"
    raise UnsupportedError.operation(what, why, "compute it after the recursion").about("recursive")


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Recursion)
    base, variable, step = shape.children
    inside = _dependent(step, plan.name)
    for one in inside:
        if one is not variable:
            _check_linear(one, plan.name)
    first = exactly(builder.rows(base), plan.base.output)
    names = names_for(a.name for a in plan.columns)
    outside = {c.number: c for one in inside for c in one.children if plan.name not in c.variables}
    name = plan.name.split("#", 1)[0]
    given = {f"{name}: {i + 1}": builder.rows(c) for i, c in enumerate(outside.values())}

    def body(**streams: Stream) -> Stream:
        rows = streams[name]
        built = {variable.number: Rows(rows, tuple(rows.columns))}
        for (key, had), number in zip(given.items(), outside, strict=True):
            built[number] = Rows(streams[key], had.columns)
        inner = Builder(rows.circuit, builder.inputs, builder.forms, built)
        made = inner.rows(step)
        return rows._aligned(streams[f"{name}: base"]).plus(rows._aligned(exactly(made, plan.step.output)))

    schema = pa.schema([pa.field(n, f.type) for n, f in zip(names, first.schema, strict=True)])
    outer = {f"{name}: base": first, **{key: had.stream for key, had in given.items()}}
    most = _MOST if plan.levels is None else plan.levels
    found = recursive(builder.circuit, {name: schema}, body, outer, most, distinct=not plan.every)[name]
    return Rows(found, tuple(found.columns))


FORM = Form(whole, _rows)
