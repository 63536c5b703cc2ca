"""Nest: a fixpoint as a node of a circuit.

The inner circuit computes the next value of its variables from their present ones and from outer streams; the nest
repeats that until nothing changes, from nothing. A variable is made distinct in each round unless it was asked to
count, so that a recursion that only finds the same rows again ends. What the nest gives in a step is by how much the
fixpoint changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from headwater.base.errors import ExpressionError
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.nesting.inner import InnerCircuit
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["Nest", "Port"]


class Nest(Node):
    """The fixpoint of an inner circuit; its output is that of the first variable, and `results` has them all."""

    kind: ClassVar[Kind] = "nest"
    shared: ClassVar[bool] = True

    def __init__(self, inputs: Sequence[Node], inner: InnerCircuit, most: int) -> None:
        first = next(iter(inner.results.values()))
        super().__init__(inputs, first.layout, label="recursion", detail=", ".join(inner.results))
        self.inner = inner
        self._most = most
        self.results: dict[str, ZSet] = {name: v.node.empty for name, v in inner.results.items()}

    @property
    def fingerprint(self) -> str:
        names = fingerprints(self.inner)
        results = ", ".join(names[v.id] for v in self.inner.results.values())
        return f"{super().fingerprint} of {', '.join(names)} giving {results}"

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        inner = self.inner
        found: dict[str, list[ZSet]] = {name: [] for name in inner.results}
        entering: dict[int, ZSet] = dict(zip(inner.imports, deltas, strict=True))
        iteration = 0
        while True:
            if iteration > self._most:
                raise ExpressionError.no_fixpoint(self.detail, self._most)
            values = inner.iterated(entering, iteration)
            entering = {}
            for name, vertex in inner.results.items():
                change = values[vertex.id].consolidate()
                if len(change):
                    found[name].append(change)
                    entering[inner.variables[name]] = change
            following = iteration + 1 if entering else inner.waiting()
            if following is None:
                break
            iteration = following
        self.results = {
            name: concatenate(some, inner.results[name].layout).consolidate() for name, some in found.items()
        }
        return next(iter(self.results.values()))

    def commit(self) -> None:
        for operator in self.inner.operators:
            operator.commit()
        self.results = {name: v.node.empty for name, v in self.inner.results.items()}

    def rollback(self) -> None:
        for operator in self.inner.operators:
            operator.rollback()
        self.results = {name: v.node.empty for name, v in self.inner.results.items()}

    def traces(self) -> Mapping[str, Trace]:
        return {
            f"{i} {name}": trace
            for i, operator in enumerate(self.inner.operators)
            for name, trace in operator.traces().items()
        }


class Port(Node):
    """One variable of a nest that has several."""

    kind: ClassVar[Kind] = "lift"
    restless: ClassVar[bool] = True

    def __init__(self, nest: Node, name: str) -> None:
        assert isinstance(nest, Nest)
        super().__init__([nest], nest.results[name].layout, label="variable", detail=name)
        self._nest = nest

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return self._nest.results[self.detail]
