"""Vertices: the places of a circuit, each with one node for every shard.

A circuit with ``n`` shards has ``n`` copies of each node, and each copy sees its share of the rows. Operators that work
by key need all rows of a key on one shard; where rows are not together already, an exchange is put before them.
Rows of a key go to the shard that the top of the key's hash says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headwater.incremental.aggregates.tally import float_words, normalised
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import Positions, ZSet, concatenate
from headwater.kernels.hash import hash_rows

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.operators.settled import Settled
    from headwater.incremental.operators.watermark import Mark

__all__ = ["Exchange", "Figures", "Vertex", "marks_of_all", "shard_of"]


@dataclass(slots=True)
class Figures:
    """What a vertex has done so far."""

    steps: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    bytes_in: int = 0
    """How large the rows are that were read of a source, in Arrow."""
    shuffled_bytes: int = 0
    """In how many bytes its rows went through Spark's shuffle."""

    def took(self, rows_in: int, rows_out: int, seconds: float) -> None:
        """Count one more step."""
        self.steps += 1
        self.rows_in += rows_in
        self.rows_out += rows_out
        self.seconds += seconds

    def add(self, other: Figures) -> None:
        """Count what was done elsewhere, too."""
        self.steps += other.steps
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.seconds += other.seconds
        self.bytes_in += other.bytes_in
        self.shuffled_bytes += other.shuffled_bytes

    def since(self, before: Figures | None) -> Figures:
        """What was done after ``before``, which is nothing if it is None."""
        b = before or Figures()
        return Figures(
            self.steps - b.steps,
            self.rows_in - b.rows_in,
            self.rows_out - b.rows_out,
            self.seconds - b.seconds,
            self.bytes_in - b.bytes_in,
            self.shuffled_bytes - b.shuffled_bytes,
        )


@dataclass(slots=True, eq=False)
class Vertex:
    """A place of the circuit: its nodes, one a shard, and where its rows come from."""

    id: int
    nodes: list[Node]
    inputs: tuple[Vertex, ...]
    placed_by: tuple[str, ...] | None = None
    placing: tuple[int, ...] = ()
    """Which columns of the key of its state say where rows are placed."""
    group: str | None = None
    origin: str = ""
    """The part of a query that it was made for, where its node does not say it itself."""
    marks: dict[str, Mark] = field(default_factory=dict)
    """The columns that are behind a watermark."""
    needs: tuple[Settled | None, ...] = ()
    """For each input that is an arrangement: which of its rows it does not look at again."""
    settled: Settled | None = None
    """The same of its own state."""
    signed: bool = False
    """May rows be taken away that are not there, so that weights are below zero?"""
    figures: Figures = field(default_factory=Figures)
    recalled: tuple[int, int] | None = None
    """The rows and bytes of its state at a checkpoint, for a picture of a circuit that does not have it."""
    nothing: list[ZSet] = field(init=False)

    def __post_init__(self) -> None:
        self.nothing = [node.empty for node in self.nodes]

    @property
    def node(self) -> Node:
        """The node of the first shard, which stands for all."""
        return self.nodes[0]

    @property
    def sql(self) -> str:
        """The part of a query that it computes, or helps to compute."""
        return (self.node.sql or self.origin).replace("\0", "")

    @property
    def layout(self) -> Layout:
        """The layout of the rows that it gives."""
        return self.nodes[0].layout


def marks_of_all(vertices: Sequence[Vertex]) -> dict[str, Mark]:
    """The marks of rows that come from all of some vertices of the same columns, by the names of the first."""
    found = {}
    for i, name in enumerate(vertices[0].layout.names):
        marks = [v.marks.get(v.layout.names[i]) for v in vertices]
        known = [m for m in marks if m is not None]
        if len(known) == len(marks):
            found[name] = known[0].both(*known)
    return found


class Exchange(Node):
    """Sends each row to the shard of its key; on one shard it does nothing."""

    kind: ClassVar[Kind] = "exchange"

    def __init__(self, source: Node, keys: Sequence[str]) -> None:
        super().__init__([source], source.layout, label="exchange", detail="by " + (", ".join(keys) or "nothing"))
        arrangement = Arrangement(source.layout, list(keys), keys=len(keys))
        self.keyed = arrangement
        """The rows with the columns that they are placed by as their key."""

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return deltas[0]

    def scatter(self, parts: Sequence[ZSet]) -> list[ZSet]:
        """The rows of all shards, as the shards that they belong to."""
        shards = len(parts)
        scattered: list[list[ZSet]] = [[] for _ in range(shards)]
        for part in parts:
            if not len(part):
                continue
            target = shard_of(self.keyed, part, shards)
            for s in range(shards):
                at = np.flatnonzero(target == s)
                if len(at):
                    scattered[s].append(part if len(at) == len(part) else part.filtered(at))
        return [concatenate(some, self.layout) for some in scattered]


def shard_of(keyed: Arrangement, rows: ZSet, shards: int) -> Positions:
    """The shard of each row: the hashes are cut into equal ranges."""
    if not keyed.target.keys:
        return np.zeros(len(rows), dtype=np.int64)
    keys = normalised(keyed.apply(rows), float_words(keyed.target, keyed.target.keys))
    hashes = hash_rows(keys.rows, keyed.target.key_parts)
    return (((hashes >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32)).astype(np.int64)
