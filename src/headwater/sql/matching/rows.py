"""The rows that a pattern is searched in: sorted, cut into partitions, and looked at from a distance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.sql.nodes import Call, Column, Literal, Node, call, rewrite
from headwater.sql.plan import Match
from headwater.sql.row_patterns.calls import VALUE, place_of
from headwater.sql.vectorised import Vector, compile_expression, vector_of

__all__ = ["SortedRows", "bounds_of", "columns_seen", "pattern_columns", "seen_from", "shifted_name"]

Indices = npt.NDArray[np.int64]
_THERE = "\0there"


class SortedRows:
    """Rows of some partitions, one after the other, each in its order; columns are called by their keys."""

    def __init__(self, table: pa.Table, bounds: Indices) -> None:
        self.table = table
        self.bounds = bounds
        self._columns: dict[str, pa.Array] = {}

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
        read.add((shift, _THERE))
        there = Column(None, (shifted_name(shift, _THERE),), pa.bool_())
        return call("case", (there, plain, Literal(None, plain.dtype)), plain.dtype)

    return rewrite(node, change), frozenset(read)


def columns_seen(rows: SortedRows, read: Iterable[tuple[int, str]], places: Indices) -> dict[str, pa.Array]:
    """The shifted columns that a tree of `seen_from` reads, seen from some rows (-1: from none)."""
    found = {}
    for shift, name in read:
        moved = rows.moved(places, shift)
        value = pa.array(moved >= 0) if name == _THERE else rows.taken(name, moved)
        found[shifted_name(shift, name)] = value
    return found


def bounds_of(table: pa.Table, keys: Sequence[Node]) -> Indices:
    """Where the partitions of sorted rows begin, and where the last one ends."""
    rows = table.num_rows
    if not keys or rows == 0:
        return np.array([0, rows] if rows else [0], np.int64)
    differs: Any = np.zeros(rows - 1, bool)
    for key in keys:
        assert isinstance(key, Column) and len(key.path) == 1
        column = table.column(key.path[0])
        schema = pa.schema([("a", key.dtype), ("b", key.dtype)])
        same = call("<=>", (Column(None, ("a",), key.dtype), Column(None, ("b",), key.dtype)), pa.bool_())
        sides: list[Vector] = [vector_of(column.slice(0, rows - 1)), vector_of(column.slice(1))]
        differs |= ~compile_expression(same, schema).run(sides, rows - 1).values
    return np.concatenate([[0], np.flatnonzero(differs) + 1, [rows]]).astype(np.int64)
