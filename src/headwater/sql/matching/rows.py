"""The rows that a pattern is searched in: sorted, cut into partitions, and looked at from a distance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.sql.matching.ties import differing
from headwater.sql.nodes import Call, Column, Literal, Node, call, rewrite
from headwater.sql.plan import Match
from headwater.sql.row_patterns.calls import VALUE, place_of
from headwater.sql.vectorised import Vector, vector_of

__all__ = ["OWN", "THERE", "SortedRows", "bounds_of", "pattern_columns", "seen_from", "shifted_name"]

Indices = npt.NDArray[np.int64]
THERE = "\0there"
OWN = "\0own"
"""A column of flags beside those that a match reads: no match begins at a row for which it is false."""


class SortedRows:
    """Rows of some partitions, one after the other, each in its order; columns are called by their keys."""

    def __init__(self, table: pa.Table, bounds: Indices) -> None:
        self.table = table
        self.bounds = bounds
        self._columns: dict[str, pa.Array] = {}
        self._seen: dict[tuple[int, str], Vector] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array:
        """A column in one piece."""
        if name not in self._columns:
            column = self.table.column(name)
            self._columns[name] = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return self._columns[name]

    @cached_property
    def first(self) -> Indices:
        """For each row, where its partition begins."""
        return np.repeat(self.bounds[:-1], np.diff(self.bounds))

    @cached_property
    def end(self) -> Indices:
        """For each row, where its partition ends."""
        return np.repeat(self.bounds[1:], np.diff(self.bounds))

    def moved(self, rows: Indices, shift: int) -> Indices:
        """For each row (-1: none) the one so many places on in its partition, or -1."""
        if shift == 0:
            return rows
        there = rows >= 0
        safe = np.where(there, rows, 0)
        if not len(self):
            return np.full(len(rows), -1, np.int64)
        moved = safe + shift
        there &= (moved >= self.first[safe]) & (moved < self.end[safe])
        return np.where(there, moved, -1)

    def seen(self, shift: int, name: str) -> Vector:
        """A column as each row sees it so many rows on; null beyond the partition."""
        key = (shift, name)
        if key not in self._seen:
            self._seen[key] = self._look(shift, name)
        return self._seen[key]

    def _look(self, shift: int, name: str) -> Vector:
        count = len(self)
        if name == THERE:
            return Vector(pa.bool_(), self._reaches(shift))
        plain = vector_of(self.column(name))
        if shift == 0:
            return plain
        if isinstance(plain.values, pa.Array):
            return vector_of(self.taken(name, self.moved(np.arange(count), shift)))
        values = np.zeros(count, plain.values.dtype)
        valid = self._reaches(shift)
        to, of = (slice(0, -shift), slice(shift, None)) if shift > 0 else (slice(-shift, None), slice(0, shift))
        if abs(shift) < count:
            values[to] = plain.values[of]
            if plain.valid is not None:
                valid[to] &= plain.valid[of]
        return Vector(plain.dtype, values, valid)

    def _reaches(self, shift: int) -> npt.NDArray[np.bool_]:
        """For each row whether its partition goes on so far."""
        at = np.arange(len(self)) + shift
        return np.asarray((at < self.end) if shift > 0 else (at >= self.first))

    def taken(self, name: str, rows: Indices) -> pa.Array:
        """The values of a column in some rows; null for -1."""
        return self.column(name).take(pa.array(rows, mask=rows < 0))


def pattern_columns(match: Match) -> dict[str, pa.DataType]:
    """The child's columns that a match reads, by their keys."""
    read = match.read
    return {a.key: a.dtype for a in match.child.output if a.key in read}


def shifted_name(shift: int, name: str) -> str:
    """What a column is called when it is read so many rows on."""
    return f"{shift}\0{name}"


def seen_from(node: Node) -> tuple[Node, frozenset[tuple[int, str]]]:
    """A tree whose values are all of rows near one row, as a tree over shifted columns, and these columns.

    A value of a row that does not exist is null; what is computed from it there is not computed at all.
    """
    read: set[tuple[int, str]] = set()

    def change(part: Node) -> Node | None:
        if not isinstance(part, Call) or part.op != VALUE:
            return None
        shift = place_of(part).shift

        def column(inner: Node) -> Node | None:
            if not isinstance(inner, Column):
                return None
            read.add((shift, inner.path[0]))
            return Column(None, (shifted_name(shift, inner.path[0]), *inner.path[1:]), inner.dtype)

        plain = rewrite(part.args[0], column)
        if isinstance(plain, Column):
            return plain
        read.add((shift, THERE))
        there = Column(None, (shifted_name(shift, THERE),), pa.bool_())
        return call("case", (there, plain, Literal(None, plain.dtype)), plain.dtype)

    return rewrite(node, change), frozenset(read)


def bounds_of(table: pa.Table, keys: Sequence[Node]) -> Indices:
    """Where the partitions of sorted rows begin, and where the last one ends."""
    rows = table.num_rows
    if not keys or rows == 0:
        return np.array([0, rows] if rows else [0], np.int64)
    return np.concatenate([[0], np.flatnonzero(differing(table, keys)) + 1, [rows]]).astype(np.int64)
