"""Operators and the edges between them, as plain data.

Renderers take this; `headwater.observe.graph.Graph` is the same with the renderings as methods.

Invariants, asserted when a graph is made: ids are unique; every input is a node; without the edges that are marked as
feedback there is no cycle. A graph is immutable, and its renderings depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

__all__ = ["Edge", "GraphNode", "Heat", "NodeGraph", "NodeMetrics", "times_done"]

Heat = Literal["seconds", "rows", "state", "read", "shuffle"]


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """What a node has done so far, and what it holds now."""

    rows_in: int
    rows_out: int
    seconds: float
    state_rows: int
    state_bytes: int
    steps: int
    bytes_out: int = field(default=0, repr=False)
    """How large the rows are that it gave, where that is known."""
    tasks: int = field(default=0, repr=False)
    """How many tasks did it, where it is not done in steps."""
    bytes_in: int = field(default=0, repr=False)
    """How large the rows are that it read of a table, where it is a source that counts them."""
    shuffled_bytes: int = field(default=0, repr=False)
    """In how many bytes its rows went through Spark's shuffle."""


def times_done(metrics: Iterable[NodeMetrics]) -> tuple[int, str]:
    """In how many steps something was done, or by how many tasks, and what these are called.

    >>> times_done([NodeMetrics(1, 1, 0.5, 0, 0, 3)]), times_done([NodeMetrics(1, 1, 0.5, 0, 0, 1, tasks=1)])
    ((3, 'steps'), (1, 'task'))
    """
    found = list(metrics)
    tasks = max((m.tasks for m in found), default=0)
    count, word = (tasks, "task") if tasks else (max((m.steps for m in found), default=0), "step")
    return count, word if count == 1 else f"{word}s"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """
    One operator.

    Parameters
    ----------
    id
        Its name in this graph; only used to refer to it.
    kind
        What sort of operator it is: decides its colour.
    label, detail
        What is written on it: the operator, and its arguments.
    inputs
        The nodes whose rows it takes, in order; one may be listed twice.
    sql
        The piece of the query it comes from.
    group
        The box around it; ``outer/inner`` is a box in a box.
    metrics
        What it has done, where that is known.
    feedback
        The nodes whose rows it takes one step later: edges that may close a cycle. One that is listed in ``inputs``
        too is the same edge.
    """

    id: str
    kind: str
    label: str
    detail: str = ""
    inputs: tuple[str, ...] = ()
    sql: str = ""
    group: str | None = None
    metrics: NodeMetrics | None = None
    feedback: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        """The boxes around it, from the outermost."""
        return tuple(part for part in (self.group or "").split("/") if part)


class Edge(NamedTuple):
    """Rows that go from one node to another, in the same step or, fed back, in the next."""

    source: str
    target: str
    feedback: bool


@dataclass(frozen=True, slots=True, init=False)
class NodeGraph:
    """A directed graph of operators, without the ways to look at it: see `headwater.observe.graph`."""

    title: str
    nodes: tuple[GraphNode, ...]
    _by_id: dict[str, GraphNode] = field(init=False, repr=False, compare=False)

    def __init__(self, title: str, nodes: Iterable[GraphNode]) -> None:
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "nodes", tuple(nodes))
        object.__setattr__(self, "_by_id", {node.id: node for node in self.nodes})
        self._check()

    def _check(self) -> None:
        assert len(self._by_id) == len(self.nodes), "two nodes have the same id"
        for node in self.nodes:
            unknown = [i for i in (*node.inputs, *node.feedback) if i not in self._by_id]
            assert not unknown, f"{node.id} takes rows of unknown nodes: {unknown}"
        assert len(self.ordered()) == len(self.nodes), "a cycle that is not marked as feedback"

    def __getitem__(self, node_id: str) -> GraphNode:
        return self._by_id[node_id]

    def edges(self) -> tuple[Edge, ...]:
        """Every edge, by target in the order of the nodes, then in the order of its inputs."""
        return tuple(
            Edge(source, node.id, source in node.feedback)
            for node in self.nodes
            for source in (*node.inputs, *(f for f in node.feedback if f not in node.inputs))
        )

    def ordered(self) -> tuple[GraphNode, ...]:
        """The nodes such that each comes after its inputs, feedback aside; those on a cycle are left out."""
        waiting = {node.id: 0 for node in self.nodes}
        consumers: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for edge in self.edges():
            if not edge.feedback:
                waiting[edge.target] += 1
                consumers[edge.source].append(edge.target)
        done = [node_id for node_id, count in waiting.items() if not count]
        for node_id in done:  # grows as it is read
            for consumer in consumers[node_id]:
                waiting[consumer] -= 1
                if not waiting[consumer]:
                    done.append(consumer)
        return tuple(self._by_id[node_id] for node_id in done)
