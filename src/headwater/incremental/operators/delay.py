"""Delay, integrate and differentiate: the calculus of streams.

`Delay` gives in each step what it was given in the step before (z^-1). `Integrate` gives the sum of everything so far,
and `Differentiate` the difference to the step before; they undo each other. The two halves of a delay, `Held` and
`Hold`, make a cycle possible: what is held in this step flows in the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from headwater.incremental.layout import Layout
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.run import Run
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["Delay", "Differentiate", "Held", "Hold", "Integrate"]


class _Holding(Node):
    """Remembers one Z-set from a step to the next."""

    kind: ClassVar[Kind] = "delay"
    restless: ClassVar[bool] = True

    def __init__(self, inputs: Sequence[Node], layout: Layout, *, label: str, detail: str = "") -> None:
        super().__init__(inputs, layout, label=label, detail=detail)
        self.held = Trace(layout)
        self._next: ZSet | None = None

    def hold(self, delta: ZSet) -> None:
        """Stage what is to be held from now on."""
        self._next = delta

    def commit(self) -> None:
        if self._next is not None:
            self.held.load([Run.of(self._next)] if len(self._next) else [])
        self._next = None

    def rollback(self) -> None:
        self._next = None

    def traces(self) -> Mapping[str, Trace]:
        return {"held": self.held}


class Delay(_Holding):
    """What came in the step before."""

    def __init__(self, source: Node) -> None:
        super().__init__([source], source.layout, label="delay")

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        self.hold(deltas[0].consolidate())
        return self.held.zset()


class Differentiate(_Holding):
    """What came now, less what came before."""

    def __init__(self, source: Node) -> None:
        super().__init__([source], source.layout, label="differentiate")

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        self.hold(deltas[0].consolidate())
        return concatenate([deltas[0], -self.held.zset()], self.layout).consolidate()


class Held(_Holding):
    """The side of a feedback that gives: what `Hold` was given in the step before."""

    def __init__(self, layout: Layout) -> None:
        super().__init__([], layout, label="feedback")

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return self.held.zset()


class Hold(Node):
    """The side of a feedback that takes."""

    kind: ClassVar[Kind] = "delay"
    restless: ClassVar[bool] = True

    def __init__(self, source: Node, held: Held) -> None:
        super().__init__([source], source.layout, label="feedback")
        self._held = held

    @property
    def held_id(self) -> int:
        """The id of the other side."""
        return self._held.id

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        self._held.hold(deltas[0].consolidate())
        return self.empty


class Integrate(Node):
    """The sum of all changes so far: the table that they are changes of, in every step anew."""

    kind: ClassVar[Kind] = "delay"
    restless: ClassVar[bool] = True

    def __init__(self, source: Node) -> None:
        super().__init__([source], source.layout, label="integrate")
        self.trace = Trace(self.layout)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        self.trace.stage(deltas[0])
        return concatenate([self.trace.zset(), deltas[0]], self.layout).consolidate()

    def commit(self) -> None:
        self.trace.commit()

    def rollback(self) -> None:
        self.trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"trace": self.trace}
