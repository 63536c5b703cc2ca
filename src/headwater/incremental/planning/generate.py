"""Generate: explode and its relatives are one linear node; maps,
structs and JSON were made arrays where the query was read.
"""

from __future__ import annotations

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.explode import Explode
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Rows, line_of, names_for
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.sql.plan import Generate

__all__ = ["FORM"]


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Generate)
    first = len(plan.child.output)
    shape.children[0].need({i for i in shape.needed if i < first})
    shape.children[0].need_keys(plan.child.output, keys_of(plan.source))


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Generate)
    child = builder.child(shape)
    scope = child.scope(plan.child.output)
    first = len(plan.child.output)
    passed = [c if i in shape.needed else None for i, c in enumerate(child.columns)]
    kept = list(dict.fromkeys(c for c in passed if c is not None))
    made = plan.output[first:]
    names = names_for([a.name for a in made], kept)
    called: list[str | None] = [n if first + i in shape.needed else None for i, n in enumerate(names)]
    if not kept and not any(called):
        called[-1] = names[-1]
    position = called[0] if plan.position is not None else None
    program = scope.program(plan.source)
    sql = line_of(plan, scope)
    circuit = builder.circuit
    vertex = circuit.add(
        lambda s: Explode(
            s, program, [(c, c) for c in kept], element=called[-1], position=position, outer=plan.outer, sql=sql
        ),
        [child.stream.vertex],
    )
    return Rows(Stream(circuit, vertex), (*passed, *called))


FORM = Form(_needs, _rows)
