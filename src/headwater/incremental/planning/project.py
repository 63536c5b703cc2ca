"""Project: each row with other columns. Linear; what nobody reads is not computed."""

from __future__ import annotations

from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Computed, Rows, line_of, names_for
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.sql.plan import Project

__all__ = ["FORM"]


def _places(shape: Shape) -> list[int]:
    return sorted(shape.needed) or [0]


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Project)
    read = keys_of(*(plan.items[i].node for i in _places(shape)))
    shape.children[0].need_keys(plan.child.output, read)


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Project)
    child = builder.child(shape)
    scope = child.scope(plan.child.output)
    places = _places(shape)
    made = [scope.computed(plan.items[i].node) for i in places]
    if all(isinstance(m, str) for m in made) and len(set(made)) == len(made):
        # Nothing is computed: the rows stay as they are, and only places change.
        names = dict(zip(places, [str(m) for m in made], strict=True))
        stream = child.stream
        if len(made) < len(stream.columns):
            pairs: list[tuple[str, Computed]] = [(n, n) for n in names.values()]
            stream = stream.projected(pairs, label="columns", detail=", ".join(names.values()))
        return Rows(stream, tuple(names.get(i) for i in range(len(plan.items))))
    wanted = names_for(plan.items[i].attribute.name for i in places)
    detail = line_of(plan, scope)
    stream = child.stream.projected(list(zip(wanted, made, strict=True)), label="project", detail=detail)
    called = dict(zip(places, wanted, strict=True))
    return Rows(stream, tuple(called.get(i) for i in range(len(plan.items))))


FORM = Form(_needs, _rows)
