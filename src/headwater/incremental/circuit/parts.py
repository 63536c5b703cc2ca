"""Parts: a circuit cut at its exchanges, for runtimes that compute shard by shard.

A circuit is built with two shards, so that it has its exchanges; the nodes of the first stand for the first shard,
those of the second for every other one. What reaches a *goal* (the rows that an exchange sends, or an output) without
passing an exchange is the cone of that goal. Its leaves are sources, and exchanges whose rows have to be there.

- A goal whose cone is linear, without state, and has only sources as leaves, is *scanned*: any piece of a source
  gives its piece of the goal, wherever it is read.
- All other goals are computed by parts: a part runs the cones of some goals for one shard. Parts come in an order in
  which each needs only what scans and parts before it give.

An operator may lie in several cones, and then several parts run it on the same rows. The first of them `keeps` its
state.

Rows that are sent to aggregates which only count and add are added up before they are sent (`added_by`), so that a
hot key sends few.

A circuit that was built with one shard has no exchanges, so all of it is one cone (`whole`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from headwater.base.errors import ExpressionError
from headwater.incremental.circuit.schedule import Schedule
from headwater.incremental.circuit.sources import Source
from headwater.incremental.dataflow.vertex import Exchange, Vertex, shard_of
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.operators.location import located
from headwater.incremental.partial_sums import can_add
from headwater.incremental.zset import ZSet

if TYPE_CHECKING:
    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.zset import Positions

__all__ = ["SHARDS", "Cone", "Cut", "added_by", "cut", "place_of", "whole"]

SHARDS = 2
"""How many shards a circuit is built with that is to be cut."""


class Cone:
    """Vertices that run together, in their order, between what comes in and what goes out.

    Parameters
    ----------
    vertices
        in the order in which they run
    leaves
        sources and exchanges whose rows have to be given
    goals
        the vertices whose rows are asked for
    keeps
        the numbers of the vertices whose state is saved by whoever runs this
    """

    __slots__ = ("_schedule", "goals", "keeps", "leaves", "vertices")

    def __init__(
        self,
        vertices: tuple[Vertex, ...],
        leaves: tuple[Vertex, ...],
        goals: tuple[Vertex, ...],
        keeps: frozenset[int] = frozenset(),
    ) -> None:
        self.vertices = vertices
        self.leaves = leaves
        self.goals = goals
        self.keeps = keeps
        self._schedule: Schedule | None = None

    def run(self, circuit: Circuit, given: Mapping[int, ZSet], *, first: bool = True) -> dict[int, ZSet]:
        """The changes of the goals, by their numbers, given those of the leaves; the step is made permanent in memory.

        ``first`` says whether this is the first shard, which alone gives what does not depend on any row.
        """
        copy = 0 if first else 1
        values = [v.nodes[copy].empty for v in circuit.vertices]
        for number, rows in given.items():
            values[number] = rows
        schedule = self._schedule = self._schedule or Schedule(self.vertices, self.goals)
        for entry in schedule.entries:
            deltas = [values[i] for i in entry.inputs]
            rows_in = sum(len(d) for d in deltas)
            node = entry.vertex.nodes[copy]
            if not rows_in and not node.restless:
                continue
            start = perf_counter()
            if entry.chains:
                found = entry.chains[copy].step(deltas[0])
                values[entry.id] = found
                entry.took(len(found), perf_counter() - start, (copy,))
            else:
                try:
                    found = node.step(deltas)
                except ExpressionError as error:
                    raise located(error, node, deltas) from None
                values[entry.id] = found
                entry.figures.took(rows_in, len(found), perf_counter() - start)
            for i in entry.releases:
                values[i] = circuit.vertices[i].nodes[copy].empty
        out = {goal.id: values[goal.id] for goal in self.goals}
        for vertex in self.vertices:
            vertex.nodes[copy].commit()
        return out

    def has_work(self, *, first: bool) -> bool:
        """Whether it has something to say though no row came."""
        return first and any(v.nodes[0].restless for v in self.vertices if v.node.kind != "lift")


@dataclass(frozen=True, slots=True)
class Cut:
    """A circuit in pieces."""

    scanned: Mapping[int, Cone]
    """By the numbers of goals that are scanned: how."""
    parts: tuple[Cone, ...]

    def scan(self, goals: Sequence[int]) -> Cone:
        """One cone that computes some scanned goals at once."""
        found = [self.scanned[goal] for goal in goals]
        vertices = {v.id: v for cone in found for v in cone.vertices}
        leaves = {v.id: v for cone in found for v in cone.leaves}
        all_goals = {v.id: v for cone in found for v in cone.goals}
        return Cone(_in_order(vertices), _in_order(leaves), _in_order(all_goals))


def _in_order(vertices: Mapping[int, Vertex]) -> tuple[Vertex, ...]:
    return tuple(vertices[i] for i in sorted(vertices))


def cut(circuit: Circuit) -> Cut:
    """Cut a circuit that was built with `SHARDS` shards."""
    assert circuit.shards == SHARDS, "it has the exchanges of several shards"
    read = {v.id for vertex in circuit.vertices for v in vertex.inputs}
    goals = {v.inputs[0].id: v.inputs[0] for v in circuit.vertices if isinstance(v.node, Exchange)}
    goals |= {v.id: v for v in circuit.outputs.values()}
    goals |= {v.id: v for v in circuit.vertices if v.id not in read and not isinstance(v.node, Exchange)}
    cones = {number: _cone(goal) for number, goal in goals.items()}
    scanned = {number: cone for number, cone in cones.items() if _is_scanned(cone)}
    levels: dict[int, int] = {}

    def level(number: int) -> int:
        if number not in levels:
            below = [v.inputs[0].id for v in cones[number].leaves if isinstance(v.node, Exchange)]
            levels[number] = 1 + max((level(i) for i in below if i not in scanned), default=0)
        return levels[number]

    parts: list[Cone] = []
    kept: set[int] = set()
    computed = [number for number in cones if number not in scanned]
    for at in sorted({level(number) for number in computed}):
        own = [cones[number] for number in computed if level(number) == at]
        vertices = _in_order({v.id: v for cone in own for v in cone.vertices})
        leaves = _in_order({v.id: v for cone in own for v in cone.leaves})
        keeps = frozenset(v.id for v in vertices if v.node.traces() and v.id not in kept)
        kept |= keeps
        parts.append(Cone(vertices, leaves, _in_order({v.id: v for cone in own for v in cone.goals}), keeps))
    return Cut(scanned, tuple(parts))


def whole(circuit: Circuit) -> Cone:
    """All of a circuit that was built with one shard: its sources are the leaves, its outputs the goals."""
    assert circuit.shards == 1, "it has no exchanges"
    vertices = tuple(v for v in circuit.vertices if not isinstance(v.node, Source))
    leaves = tuple(v for v in circuit.vertices if isinstance(v.node, Source))
    keeps = frozenset(v.id for v in vertices if v.node.traces())
    return Cone(vertices, leaves, tuple({v.id: v for v in circuit.outputs.values()}.values()), keeps)


def _cone(goal: Vertex) -> Cone:
    """The cone of one goal."""
    vertices: dict[int, Vertex] = {}
    leaves: dict[int, Vertex] = {}
    waiting = [goal]
    while waiting:
        vertex = waiting.pop()
        if isinstance(vertex.node, Exchange | Source):
            leaves[vertex.id] = vertex
        elif vertex.id not in vertices:
            vertices[vertex.id] = vertex
            waiting += vertex.inputs
    return Cone(_in_order(vertices), _in_order(leaves), (goal,))


def _is_scanned(cone: Cone) -> bool:
    linear = all(v.node.kind == "lift" and not v.node.traces() and not v.node.restless for v in cone.vertices)
    return linear and bool(cone.leaves) and all(isinstance(v.node, Source) for v in cone.leaves)


def added_by(circuit: Circuit, leaf: Vertex) -> tuple[str, ...] | None:
    """The columns of which those who read an exchange want only sums; None if they want rows as they are."""
    readers = [v.node for v in circuit.vertices if leaf in v.inputs]
    if not isinstance(leaf.node, Exchange) or leaf in circuit.outputs.values() or not readers:
        return None
    compared: set[str] = set()
    for node in readers:
        some = node.compared if isinstance(node, Aggregate) else None
        if some is None:
            return None
        compared |= some
    return tuple(name for name in leaf.layout.names if name not in compared and can_add(leaf.layout, name))


def place_of(leaf: Vertex, rows: ZSet, shards: int, spread: int) -> Positions:
    """The shard of each row that comes to a leaf; rows of a source may be anywhere, and go where ``spread`` says."""
    if isinstance(leaf.node, Exchange):
        return shard_of(leaf.node.keyed, rows, shards)
    return np.full(len(rows), spread % shards, dtype=np.int64)
