"""The inner circuit of a recursion: built with the same streams as any other, run with two dimensions of time.

What is put into it is wrapped on the way: linear nodes are the same at every time, joins and keyed operators get their
nested form. What depends on the step (sources, delays, watermarks) has no meaning inside, and is refused.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from headwater.base.errors import UnsupportedError
from headwater.incremental.dataflow.dataflow import Build, Dataflow, Keys
from headwater.incremental.dataflow.vertex import Vertex
from headwater.incremental.layout import Layout
from headwater.incremental.nesting.join import NestedJoin
from headwater.incremental.nesting.keyed import NestedKeyed
from headwater.incremental.nesting.operator import NestedOperator, Pointwise
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.join import Join
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet

__all__ = ["InnerCircuit"]


class Entry(Node):
    """Where rows enter the inner circuit: of an outer stream, or of the round before."""

    kind: ClassVar[Kind] = "source"

    def __init__(self, layout: Layout, name: str) -> None:
        super().__init__([], layout, label="enter", detail=name)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return deltas[0]


class _Rearranged(NestedOperator):
    """An arrangement inside a nest: its consumers keep the state, with iterations."""

    def __init__(self, node: Arrange) -> None:
        self.node = node
        self._arrangement = node.arrangement

    def step(self, deltas: Sequence[ZSet], iteration: int) -> ZSet:
        return self._arrangement.apply(deltas[0]) if len(deltas[0]) else self.node.empty


class InnerCircuit(Dataflow):
    """A circuit whose operators are nested."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.operators: list[NestedOperator] = []
        self.variables: dict[str, int] = {}
        self.imports: list[int] = []
        self.results: dict[str, Vertex] = {}

    def entry(self, layout: Layout, name: str) -> Vertex:
        """A place where rows enter."""
        return self.add(lambda: Entry(Layout(layout.schema), name), [])

    def add(
        self,
        build: Build,
        inputs: Sequence[Vertex],
        *,
        by: Sequence[Keys] | None = None,
        place: Sequence[Keys] | None = None,
    ) -> Vertex:
        del place  # it has one shard
        vertex = super().add(build, inputs)
        self.operators.append(_nested(vertex.node, by))
        return vertex

    def iterated(self, entering: Mapping[int, ZSet], iteration: int) -> list[ZSet]:
        """The changes of all places at one iteration."""
        values: list[ZSet] = []
        for vertex, operator in zip(self.vertices, self.operators, strict=True):
            if isinstance(vertex.node, Entry):
                values.append(entering.get(vertex.id, vertex.node.empty))
                continue
            deltas = [values[v.id] for v in vertex.inputs]
            rows = sum(len(d) for d in deltas)
            if not rows and operator.waiting() != iteration:
                values.append(vertex.node.empty)
                continue
            start = time.perf_counter()
            values.append(operator.step(deltas, iteration))
            vertex.figures.took(rows, len(values[-1]), time.perf_counter() - start)
        return values

    def waiting(self) -> int | None:
        """The next iteration in which some operator has something to say."""
        times = [t for t in (o.waiting() for o in self.operators) if t is not None]
        return min(times, default=None)


def _nested(node: Node, by: Sequence[Keys] | None) -> NestedOperator:
    if isinstance(node, Arrange):
        return _Rearranged(node)
    if isinstance(node, Join):
        return NestedJoin(node)
    if isinstance(node, Entry) or (node.kind == "lift" and not node.restless):
        return Pointwise(node)
    keys = [
        list(k) if k is not None else node_input.layout.names[: node_input.layout.keys]
        for k, node_input in zip(by or [None] * len(node.inputs), node.inputs, strict=True)
    ]
    if node.kind == "cogroup":
        return NestedKeyed(node, keys)
    why = "it depends on the step, and a recursion has many rounds in one step"
    raise UnsupportedError.operation(f"{node.label} inside a recursion", why, "put it before or after the recursion")
