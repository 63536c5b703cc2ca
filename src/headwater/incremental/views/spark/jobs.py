"""Jobs: what the tasks of one part of a view's circuit have to know.

A job sends rows to *leaves* of its part, each from one goal: one that is scanned, or one whose rows an earlier part
left. The last job of a view publishes: its own output, if equal rows are together in it already, or rows that are
sent to it by their hashes.

A `whole` job has no exchange: its one task reads all shares, steps all of the circuit and publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from headwater.base.storage import Storage
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.circuit.parts import SHARDS, Cone, Cut, added_by, cut, whole
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.manifest import RunEntry
from headwater.incremental.partial_sums import summed
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.live import OUTPUT, built
from headwater.incremental.views.spark.held_state import HeldState
from headwater.incremental.views.spark.shares import Share
from headwater.incremental.zset import ZSet
from headwater.lake.snapshot import Snapshot

__all__ = ["PUBLISHED", "THERE", "Cutting", "Feed", "Job", "Publishing", "Uncut", "cutting", "scanning", "uncut"]

PUBLISHED = -1
"""The leaf of rows that are only published."""
THERE = -2
"""The leaf of rows that the view has already; where each lies is its weight."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Rows of a goal that are sent to a leaf."""

    leaf: int
    goal: int


@dataclass(frozen=True, slots=True)
class Publishing:
    """How a share of the view's rows is written."""

    base: Snapshot
    feed: bool
    """Whether the change feed is written, too."""
    next_file: int
    numbers: int
    """Each shard may give so many files their numbers, from ``next_file`` on."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job."""

    definition: str
    part: int | None
    """Which part of the circuit steps; None where rows are only published, or everything steps at once."""
    shards: int
    feeds: tuple[Feed, ...]
    shares: tuple[Share, ...]
    bases: Mapping[str, Snapshot]
    state: HeldState
    leaves: Mapping[int, int | None]
    """The goals whose rows are left for later parts, and the leaf that they are for, unless there are several."""
    folder: str
    """Where they are left, below the root of the lake."""
    root: Storage
    publishing: Publishing | None
    settings: Mapping[str, Any]
    whole: bool = False
    merges: Mapping[str, tuple[RunEntry, ...]] = field(default_factory=dict)
    """Runs that are put together, by the names of their traces: each shard takes a range of hashes."""
    journal: str | None = None
    """What the paths begin with under which shards say that they are done."""
    finished: frozenset[int] = frozenset()
    """Shards that are, and to which nothing is sent."""


class Cutting:
    """A circuit in pieces, with the names of its state."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.circuit: Circuit = built(definition, shards=SHARDS)
        self.cut: Cut = cut(self.circuit)
        self.names = fingerprints(self.circuit)
        self.output = self.circuit.outputs[OUTPUT]
        leaves = {v.id: v for part in self.cut.parts for v in part.leaves}
        self._added = {number: added_by(self.circuit, leaf) for number, leaf in leaves.items()}

    def to_send(self, leaf: int, rows: ZSet) -> ZSet:
        """Rows for a leaf, fewer where those of a key are only counted and added up."""
        added = self._added.get(leaf)
        if added is None:
            return rows
        placed = self.circuit.vertices[leaf].placed_by
        return summed(rows, placed or (), added)

    @property
    def is_placed(self) -> bool:
        """Whether equal rows of the view are on one shard where it is computed."""
        placed = self.output.placed_by
        return (
            placed is not None
            and self.output.id not in self.cut.scanned
            and set(placed) <= set(self.output.layout.names)
        )


class Uncut:
    """A circuit with one shard as one cone, with the names of its state."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.circuit: Circuit = built(definition, shards=1)
        self.cone: Cone = whole(self.circuit)
        self.names = fingerprints(self.circuit)
        self.output = self.circuit.outputs[OUTPUT]


@lru_cache(maxsize=8)
def _definition(text: str) -> Definition:
    return Definition.from_text(text)


def uncut(text: str) -> Uncut:
    """All of a definition's circuit, to be stepped once."""
    return Uncut(_definition(text))


def cutting(text: str) -> Cutting:
    """The pieces of a definition's circuit, to be stepped once."""
    return Cutting(_definition(text))


@lru_cache(maxsize=8)
def scanning(text: str) -> Cutting:
    """The same for who steps nothing that has state: the tasks of one worker share it."""
    return cutting(text)
