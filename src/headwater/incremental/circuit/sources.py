"""Sources: where changes enter a circuit.

A `Source` takes Z-sets: inserts and deletes of whole rows. A `KeyedSource` is a table with a primary key: it takes
commands (insert, upsert, delete, patch), looks up what it holds under their keys, and gives the change that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from headwater.base.errors import ConstraintError
from headwater.incremental.layout import Layout
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.trace import Trace
from headwater.incremental.zset import Positions, ZSet, concatenate
from headwater.kernels.keys import distinct_keys

__all__ = ["Command", "KeyedSource", "Source", "Verb"]

Verb = Literal["insert", "upsert", "delete", "patch", "change"]


class Source(Node):
    """An input of rows with weights."""

    kind: ClassVar[Kind] = "source"

    def __init__(self, name: str, schema: pa.Schema) -> None:
        super().__init__([], Layout(schema), label="source", detail=name)
        self.pending: list[ZSet] = []

    @property
    def restless(self) -> bool:  # type: ignore[override]
        """Was it given something?"""
        return bool(self.pending)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return concatenate(self.pending, self.layout) if self.pending else self.empty

    def commit(self) -> None:
        if self.pending:
            self.pending = []

    def rollback(self) -> None:
        self.pending = []


@dataclass(slots=True)
class Command:
    """What to do with some rows of a table with a key.

    ``rows`` are in the table's layout; of a delete only the key counts, of a patch the key and the ``columns``.
    """

    verb: Verb
    rows: ZSet
    columns: tuple[int, ...] = ()


class KeyedSource(Node):
    """An input that is a table with a primary key, whose columns come first in its layout."""

    kind: ClassVar[Kind] = "source"

    def __init__(self, name: str, schema: pa.Schema, keys: int) -> None:
        super().__init__([], Layout(schema), label="table", detail=name)
        self.pending: list[Command] = []
        self.keyed = Layout(schema, keys=keys)
        self.trace = Trace(self.keyed)

    @property
    def restless(self) -> bool:  # type: ignore[override]
        """Was it given something?"""
        return bool(self.pending)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        local = Trace(self.keyed)
        for command in self.pending:
            change = self._applied(command, local)
            if len(change):
                local.add(change)
        found = local.zset()
        self.trace.stage(found)
        return ZSet(self.layout, found.rows, found.owners)

    def commit(self) -> None:
        if self.pending:
            self.pending = []
        self.trace.commit()

    def rollback(self) -> None:
        self.pending = []
        self.trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"table": self.trace}

    def _applied(self, command: Command, local: Trace) -> ZSet:
        if command.verb == "change":
            return self._checked(command.rows, local)
        rows = _last_of_each(command.rows)
        which, held = self._held(rows, local)
        if command.verb == "insert" and len(which):
            raise ConstraintError.duplicate_key(self.detail, self._key_text(rows, int(which[0])))
        if command.verb == "insert" and len(rows) != len(command.rows):
            raise ConstraintError.duplicate_key(self.detail, self._key_text(command.rows, _first_again(command.rows)))
        if command.verb == "delete":
            return -held
        if command.verb == "patch":
            return concatenate([-held, self._patched(held, which, rows, command.columns)], self.keyed)
        return concatenate([-held, rows], self.keyed)

    def _held(self, keys: ZSet, local: Trace) -> tuple[Positions, ZSet]:
        """For the keys that are there: their positions, and the rows, in the same order."""
        found = [trace.find(keys) for trace in (self.trace, local)]
        rows = concatenate([f.rows for f in found], self.keyed)
        which = np.concatenate([f.which for f in found])
        one = ZSet(self.keyed, rows.rows, rows.owners, hashes=which.view(np.uint64)).consolidate()
        positions = one.hashes.view(np.int64)
        return positions, ZSet(self.keyed, one.rows, rows.owners)

    def _patched(self, held: ZSet, which: Positions, rows: ZSet, columns: Sequence[int]) -> ZSet:
        out = held.rows.copy()
        patch = rows.rows[which]
        for c in columns:
            placed = self.keyed.columns[c]
            out[:, placed.word : placed.word + placed.words] = patch[:, placed.word : placed.word + placed.words]
            bit = np.int64(1) << placed.null_bit
            out[:, placed.null_word] = (out[:, placed.null_word] & ~bit) | (patch[:, placed.null_word] & bit)
        return ZSet(self.keyed, out, (*held.owners, *rows.owners))

    def _checked(self, change: ZSet, local: Trace) -> ZSet:
        """A change that leaves each key at most once, or an error."""
        touched = change.consolidate()
        _, held = self._held(_last_of_each(touched), local)
        after = concatenate([held, touched], self.keyed).consolidate()
        counts = after.weights
        if (counts < 0).any():
            raise ConstraintError.missing_row(self.detail, self._key_text(after, int(np.argmax(counts < 0))))
        if (counts > 1).any():
            raise ConstraintError.duplicate_key(self.detail, self._key_text(after, int(np.argmax(counts > 1))))
        if len(_last_of_each(after)) != len(after):
            twice = np.flatnonzero(after.hashes[1:] == after.hashes[:-1])
            raise ConstraintError.duplicate_key(self.detail, self._key_text(after, int(twice[0])))
        return touched

    def _key_text(self, rows: ZSet, i: int) -> str:
        row = rows.filtered(np.array([i])).to_arrow().to_pylist()[0]
        return ", ".join(f"{name}={row[name]!r}" for name in self.keyed.names[: self.keyed.keys])


def _first_again(rows: ZSet) -> int:
    """The place of the first row whose key was there before."""
    positions = np.empty(len(rows), dtype=np.int64)
    count = distinct_keys(rows.hashes, rows.rows, rows.layout.key_parts, False, positions)
    return int(np.setdiff1d(np.arange(len(rows)), positions[:count])[0])


def _last_of_each(rows: ZSet) -> ZSet:
    """The last row of each key."""
    positions = np.empty(len(rows), dtype=np.int64)
    count = distinct_keys(rows.hashes, rows.rows, rows.layout.key_parts, True, positions)
    return rows if count == len(rows) else rows.filtered(np.sort(positions[:count]))
