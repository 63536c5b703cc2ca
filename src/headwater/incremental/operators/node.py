"""Nodes: what a circuit is made of.

A node takes the changes of its inputs in a step and gives the change of its output. There are five kinds, and
everything is a recipe over them: `lift` (linear, without state), `join` (bilinear), `cogroup` (a function of the rows
of a key), `delay`, and `nest` (a fixpoint); beside them `source`, `sink`, `arrange` (the shared state), `exchange` and
`accumulate`.

A step has two phases. In `step` a node computes, and stages what it wants to remember; anything may fail here, and then
`rollback` forgets what was staged. In `commit` staged state becomes state; nothing that depends on the data can fail
there. So a step happens for all nodes or for none.

Invariant: a node without a change at any input has nothing to say, unless it is `restless`, as a delay is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from headwater.incremental.zset import ZSet

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.operators.link import Link
    from headwater.incremental.trace import Trace

__all__ = ["Kind", "Node"]

Kind = Literal["source", "lift", "join", "cogroup", "delay", "nest", "arrange", "exchange", "accumulate", "sink"]


class Node(ABC):
    """One operator of a circuit.

    Parameters
    ----------
    inputs : sequence of Node
    layout : Layout
        of the rows that it gives
    label : str
        what it does, for people: ``filter``, ``left join``
    detail : str
        with what: the columns, the condition
    sql : str
        the piece of SQL that it comes from
    """

    kind: ClassVar[Kind]
    restless: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False
    """Its traces are sets that every shard has in whole, and not shares of the rows."""
    shared: ClassVar[bool] = False
    """The nodes of all shards have one state together."""

    def __init__(self, inputs: Sequence[Node], layout: Layout, *, label: str, detail: str = "", sql: str = "") -> None:
        self.inputs = tuple(inputs)
        self.layout = layout
        self.label = label
        self.detail = detail
        self.shown = detail
        """The detail in the words of users. Unlike the detail it is no part of what state is found by, and may be
        reworded.
        """
        self.sql = sql
        self.id = -1
        self.empty = ZSet.empty(layout)

    @abstractmethod
    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        """The change of the output, given those of the inputs."""

    def link(self) -> Link | None:
        """What it does to a row, if it can be a member of a chain."""
        return None

    def commit(self) -> None:
        """Make staged state permanent."""

    def rollback(self) -> None:
        """Forget staged state."""

    def traces(self) -> Mapping[str, Trace]:
        """The state, by names that stay the same from run to run."""
        return {}

    @property
    def fingerprint(self) -> str:
        """What it computes, as text, for finding its state again; the circuit adds what is before it.

        A node with options that its label, detail and SQL do not tell has to add them.
        """
        return f"{self.kind} {self.label} {self.detail} {self.sql} -> {self.layout.fingerprint}"

    def __repr__(self) -> str:
        return f"<{self.label} {self.detail}>".replace(" >", ">")
