"""Nested operators: what a node of an inner circuit has to be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from headwater.incremental.operators.node import Node
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

__all__ = ["NestedOperator", "Pointwise"]


class NestedOperator(ABC):
    """An operator on streams with two dimensions of time."""

    node: Node

    @abstractmethod
    def step(self, deltas: Sequence[ZSet], iteration: int) -> ZSet:
        """The change of the output at an iteration of this epoch."""

    def waiting(self) -> int | None:
        """The next iteration in which it has something to say of itself, if any."""
        return None

    def commit(self) -> None:
        """The epoch is over."""

    def rollback(self) -> None:
        """The epoch did not happen."""

    def traces(self) -> Mapping[str, Trace]:
        """The state, by name."""
        return {}


class Pointwise(NestedOperator):
    """A linear operator: the same at every time."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def step(self, deltas: Sequence[ZSet], iteration: int) -> ZSet:
        return self.node.step(deltas) if any(len(d) for d in deltas) else self.node.empty
