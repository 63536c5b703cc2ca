"""Schedules: in which order the vertices of a circuit run, and which of them run together.

Vertices are built inputs first, so their order is one in which they can run. What a schedule adds is **chains**: linear
vertices that follow each other, where each but the last has the next as its only reader, are one entry
(`headwater.incremental.operators.chain`), together with the arrangement that reads the last of them, if nobody else
does. A vertex whose rows are an output, or are read by two others, ends its chain: its rows have to be there. What a
vertex is called, and the name of its state, have nothing to do with it.

A small step is mostly what happens between kernels, so an entry has at hand what running it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.incremental.circuit.forgetting import forgetting_of
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.chain import Chain
from headwater.incremental.operators.join import Join
from headwater.incremental.operators.node import Node

if TYPE_CHECKING:
    from headwater.incremental.dataflow.vertex import Figures, Vertex

__all__ = ["Entry", "Schedule"]


@dataclass(slots=True)
class Entry:
    """What runs at once: a vertex, or the members of a chain, of which it is the last;
    a chain has one form for each shard.
    """

    vertex: Vertex
    inputs: tuple[int, ...]
    members: tuple[Vertex, ...] = ()
    chains: tuple[Chain, ...] = ()
    releases: tuple[int, ...] = ()
    """The vertices whose values nobody reads after it."""
    node: Node = field(init=False)
    id: int = field(init=False)
    figures: Figures = field(init=False)

    def __post_init__(self) -> None:
        self.node = self.vertex.node
        self.id = self.vertex.id
        self.figures = self.vertex.figures

    def took(self, rows_out: int, seconds: float, shards: Sequence[int] = (0,)) -> None:
        """Count one more step of the members of a chain; its time stands with the last."""
        rows = self.chains[0].rows
        if len(shards) != 1 or shards[0]:
            rows = [sum(some) for some in zip(*(self.chains[s].rows for s in shards), strict=True)]
        for i, vertex in enumerate(self.members):
            figures = vertex.figures
            figures.steps += 1
            figures.rows_in += rows[i]
            figures.rows_out += rows[i + 1]
        figures.rows_out += rows_out - rows[-1]
        figures.seconds += seconds


class Schedule:
    """The entries of a circuit in the order in which they run."""

    def __init__(self, vertices: Sequence[Vertex], outputs: Sequence[Vertex]) -> None:
        self.made_for = (len(vertices), len(outputs))
        _loosen(vertices)
        self.entries = [_entry(members) for members in chained(vertices, outputs)]
        _release(self.entries, outputs)
        self.commits: list[Callable[[], None]] = [
            node.commit for v in vertices for node in v.nodes if type(node).commit is not Node.commit
        ]
        self.nothing = [v.nothing for v in vertices]
        self.forgetting = forgetting_of(vertices)

    def commit(self) -> None:
        """Make the step permanent, and let go what nobody will look at again."""
        for commit in self.commits:
            commit()
        for each in self.forgetting:
            each.run()


def chained(vertices: Sequence[Vertex], outputs: Sequence[Vertex]) -> list[list[Vertex]]:
    """The vertices in their order, those of a chain together, where the last of them stands."""
    readers: dict[int, int] = {}
    for vertex in vertices:
        for v in vertex.inputs:
            readers[v.id] = readers.get(v.id, 0) + 1
    for v in outputs:
        readers[v.id] = readers.get(v.id, 0) + 1
    chains: dict[int, list[Vertex]] = {}
    for vertex in vertices:
        own = [vertex]
        if _can_follow(vertex):
            before = vertex.inputs[0]
            if readers[before.id] == 1 and before.node.link() is not None:
                own = [*chains.pop(before.id), vertex]
        chains[vertex.id] = own
    return list(chains.values())


def _loosen(vertices: Sequence[Vertex]) -> None:
    """Find the arrangements that only joins read: a product of sums is the sum of products,
    so their rows need no order.
    """
    read_by: dict[int, list[Node]] = {}
    for vertex in vertices:
        for v in vertex.inputs:
            read_by.setdefault(v.id, []).append(vertex.node)
    for vertex in vertices:
        for node in vertex.nodes:
            if isinstance(node, Arrange):
                node.is_loose = all(isinstance(n, Join) for n in read_by.get(vertex.id, ()))


def _release(entries: Sequence[Entry], outputs: Sequence[Vertex]) -> None:
    """Find out behind which entry the value of each vertex is read by nobody."""
    last: dict[int, Entry] = {}
    for entry in entries:
        last |= dict.fromkeys(entry.inputs, entry)
    given = {v.id for v in outputs}
    for number, entry in last.items():
        if number not in given:
            entry.releases += (number,)


def _can_follow(vertex: Vertex) -> bool:
    node = vertex.node
    return len(vertex.inputs) == 1 and (isinstance(node, Arrange) or node.link() is not None)


def _entry(members: Sequence[Vertex]) -> Entry:
    last = members[-1]
    inputs = tuple(v.id for v in members[0].inputs)
    if len(members) == 1:
        return Entry(last, inputs)
    shards = range(len(last.nodes))
    chains = tuple(Chain([v.nodes[s] for v in members]) for s in shards)
    return Entry(last, inputs, tuple(members), chains)
