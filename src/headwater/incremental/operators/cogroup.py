"""Cogroup: a function of the rows of a key, kept up to date.

For the keys that a step touches, the output changes by the function of the new rows less the function of the old ones.
The inputs are arranged by one key, so both are in their traces: the old rows are the trace without what is staged, the
new ones with it, and no output has to be remembered. With a `Reach` the function is given slices of the groups instead
of whole ones, and a change in a group of a million rows costs its slice.

Functions get `Groups`: sorted rows, one for each copy, with the offsets where groups begin. They may not depend on
anything else, and give the same for the same rows, or the output would drift. Invariant: what a function gives outside
the cores of slices is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from headwater.base.errors import UnsupportedError
from headwater.incremental.moving import Moving
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.operators.reach import Reach, order_value
from headwater.incremental.zset import Positions, ZSet, concatenate
from headwater.kernels.groups import BY_ROWS, gather, groups, slices
from headwater.kernels.keys import distinct_keys
from headwater.kernels.window_rows import copies, expand

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.operators.arrange import Arrange
    from headwater.incremental.packing import Owners, Rows
    from headwater.incremental.trace import Trace

__all__ = ["Cogroup", "Function", "Groups", "Slices", "read_groups", "read_slices", "touched_keys"]

Mask = npt.NDArray[np.bool_]

_MOST_COPIES = float(1 << 31)
_OLD, _NEW, _CORE, _SLICE = 2, 3, 4, 5
_NO_VALUE = np.array([-1, -1, -1], dtype=np.int64)


@dataclass(slots=True)
class Groups:
    """Sorted rows with group offsets: copy ``i`` is ``rows[at[i]]``,
    and group ``g`` is ``offsets[g]`` to ``offsets[g + 1]``.
    """

    layout: Layout
    rows: Rows
    at: Positions
    offsets: Positions
    owners: Owners

    def __len__(self) -> int:
        return len(self.at)


@dataclass(slots=True)
class Slices:
    """Different rows around changes, with their weights before and after;
    ``firsts`` are the rows of the first change in each slice.
    """

    layout: Layout
    rows: Rows
    old: Positions
    new: Positions
    core: Mask
    piece: Positions
    pieces: int
    firsts: Rows
    owners: Owners

    def expanded(self, weights: Positions) -> tuple[Positions, Positions]:
        """The positions of all copies, and the offsets of the slices among them."""
        size = copies(weights)
        if size > _MOST_COPIES:
            why = f"rows of one group have {size:.0f} copies"
            raise UnsupportedError.operation("an ordered operator", why, "count equal rows before, with GROUP BY")
        at = np.empty(int(size), dtype=np.int64)
        offsets = np.empty(self.pieces + 1, dtype=np.int64)
        expand(weights, self.piece, self.pieces, at, offsets)
        return at, offsets

    def groups(self, weights: Positions) -> Groups:
        """The rows with these weights."""
        at, offsets = self.expanded(weights)
        return Groups(self.layout, self.rows, at, offsets, self.owners)


Function = Callable[[Sequence[Groups]], ZSet]
"""Given groups of each input (the same keys, in the same order), the rows of the output."""


def read_slices(trace: Trace, reach: Reach) -> Slices:
    """The slices around what is staged."""
    layout = trace.layout
    table = trace.table(staged=True)
    assert reach.mode is not None, "a whole group is read by its key"
    distances = any(bound for bound in (*reach.core, *reach.context))
    value = order_value(layout, reach.peers) if reach.mode != BY_ROWS and distances else _NO_VALUE
    peers = len(layout.order) if reach.peers is None else reach.peers
    picks, firsts = slices(
        table,
        layout.width,
        layout.key_parts,
        layout.sort_parts,
        reach.mode,
        reach.extent,
        value,
        np.concatenate([layout.key_parts, layout.first_order_parts(peers)]),
    )
    changes = np.zeros((len(firsts), picks.shape[1]), dtype=np.int64)
    changes[:, 0] = len(table) - 1
    changes[:, 1] = firsts
    return _gathered(trace, table, picks, _rows(layout, table, changes))


def read_groups(trace: Trace, keys: ZSet) -> Slices:
    """All rows of some keys, which are rows of the trace's layout; old and new are without and with what is staged."""
    layout = trace.layout
    table = trace.table(staged=True)
    staged = len(table) > len(trace.table())
    picks = groups(table, layout.width, staged, keys.hashes, keys.rows, layout.key_parts, layout.sort_parts)
    return _gathered(trace, table, picks, keys.rows)


def _rows(layout: Layout, table: Rows, picks: Rows) -> Rows:
    rows = np.empty((len(picks), layout.width), dtype=np.int64)
    gather(table, layout.width, picks, layout.slots, rows)
    return rows


def _gathered(trace: Trace, table: Rows, picks: Rows, firsts: Rows) -> Slices:
    layout = trace.layout
    rows = _rows(layout, table, picks)
    old, new, core, piece = (np.ascontiguousarray(picks[:, c]) for c in (_OLD, _NEW, _CORE, _SLICE))
    return Slices(layout, rows, old, new, core != 0, piece, len(firsts), firsts, trace.owners(staged=True))


def touched_keys(delta: ZSet) -> ZSet:
    """One row for each key of a change."""
    at = np.empty(len(delta), dtype=np.int64)
    count = distinct_keys(delta.hashes, delta.rows, delta.layout.key_parts, False, at)
    return delta.filtered(at[:count])


class Cogroup(Node):
    """A function of the rows of a key, of one or more arranged streams.

    Parameters
    ----------
    inputs : sequence of Arrange
        by the same key
    layout : Layout
        of the rows that the function gives
    function : Function
        from groups to rows with weights
    reach : Reach
        what a change can touch; only the whole group where there is more than one input
    """

    kind: ClassVar[Kind] = "cogroup"

    def __init__(
        self,
        inputs: Sequence[Arrange],
        layout: Layout,
        *,
        function: Function | None = None,
        reach: Reach | None = None,
        label: str = "cogroup",
        detail: str = "",
        sql: str = "",
    ) -> None:
        super().__init__(inputs, layout, label=label, detail=detail, sql=sql)
        self.reach = reach or Reach.whole()
        assert self.reach.mode is None or len(inputs) == 1, "slices are of one input"
        self.arranged = tuple(inputs)
        self._function = function
        first = inputs[0].layout
        keys = [(i, i) for i in range(first.keys)]
        assert all(i.layout.keys == first.keys for i in inputs), "inputs of a cogroup have one key"
        self._keys = [[Moving(a.layout, b.layout, keys, weight=None) for b in inputs] for a in inputs]

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        if not any(len(d) for d in deltas):
            return self.empty
        return self.change(self._read(deltas))

    def change(self, read: Sequence[Slices]) -> ZSet:
        """The change of the output, given the old and new rows."""
        assert self._function is not None, "a cogroup has a function, or its own way to compare"
        new = self._function([s.groups(s.new) for s in read])
        old = self._function([s.groups(s.old) for s in read])
        return concatenate([new, -old], self.layout).consolidate()

    def _read(self, deltas: Sequence[ZSet]) -> list[Slices]:
        if self.reach.mode is not None:
            return [read_slices(self.arranged[0].trace, self.reach)]
        if len(self.arranged) == 1:
            return [read_groups(self.arranged[0].trace, touched_keys(deltas[0]))]
        read = []
        for to, arranged in enumerate(self.arranged):
            layout = arranged.layout
            parts = []
            for of, delta in enumerate(deltas):
                parts.append(ZSet(layout, self._keys[of][to].moved(delta.rows), delta.owners))
            read.append(read_groups(arranged.trace, touched_keys(concatenate(parts, layout))))
        return read
