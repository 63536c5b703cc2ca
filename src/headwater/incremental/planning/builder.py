"""From shapes to a circuit: each shape becomes a stream, its children first.

One file for each kind of node says two things: which columns of its children it reads (``needs``), and how it is built
(``rows``). Here is what is common to them: the order in which it happens, and that nothing is built twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.dataflow.dataflow import Dataflow
from headwater.incremental.planning.rows import Rows, line_of
from headwater.incremental.planning.shape import Shape
from headwater.sql.plan import Plan
from headwater.sql.plan.rebuilding import with_expressions
from headwater.sql.plan.wording import worded

__all__ = ["Builder", "Form"]


@dataclass(frozen=True, slots=True)
class Form:
    """How one kind of node becomes a part of a circuit."""

    needs: Callable[[Shape], None]
    rows: Callable[[Builder, Shape], Rows]


@dataclass
class Builder:
    """What is built so far, in one circuit."""

    circuit: Dataflow
    inputs: Mapping[str, Stream]
    forms: Mapping[type[Plan], Form]
    built: dict[int, Rows] = field(default_factory=dict)
    first: int = field(init=False)
    """The number of the first operator that is built here."""

    def __post_init__(self) -> None:
        self.first = len(self.circuit.vertices)

    def rows(self, shape: Shape) -> Rows:
        """The rows of a shape."""
        found = self.built.get(shape.number)
        if found is None:
            found = self.built[shape.number] = self._form(shape).rows(self, shape)
            self.named(shape)
        return found

    def named(self, shape: Shape) -> None:
        """Let what was built say what of the query it is for; the children have said it of theirs."""
        for vertex in self.circuit.vertices[self.first :]:
            vertex.origin = vertex.origin or line_of(with_expressions(shape.plan, worded))

    def child(self, shape: Shape, which: int = 0) -> Rows:
        """The rows of a child."""
        return self.rows(shape.children[which])

    def demand(self, shapes: list[Shape]) -> None:
        """Let every shape say what it reads, readers before what they read."""
        for shape in reversed(shapes):
            form = self.forms.get(type(shape.plan))
            if form is not None and (shape.children or not shape.variables):
                form.needs(shape)

    def _form(self, shape: Shape) -> Form:
        form: Any = self.forms.get(type(shape.plan))
        if form is None:
            what = type(shape.plan).__name__.lower()
            raise UnsupportedError.operation(what, "a circuit has no form for it", "compute it before the view")
        assert isinstance(form, Form)
        return form
