"""Join: pairs of rows with equal keys, by the product rule.

The change of A x B is dA x B' + A x dB, with B' the new B and A the old A: each changed row looks up its key in the
other side's trace. A pair's weight is the product of the weights. Nulls are equal to nothing, so rows with a null in
the key find nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.base.errors import ConstraintError
from headwater.incremental.layout import Layout
from headwater.incremental.moving import bit_moves, word_moves
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.run import Run
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels import probe as kernels

__all__ = ["Join", "Lookup"]


_MOST_AHEAD = 1 << 20
"""How many rows of output are made room for before their number is known."""


class Lookup:
    """Rows that look their key up in a trace, and become rows of ``target`` with what they find.

    ``mine`` and ``theirs`` are pairs of columns (from, to) that the two sides contribute. A row with a null in its key
    finds nobody, unless ``nulls_match``.
    """

    __slots__ = (
        "_barred",
        "_bits",
        "_fan",
        "_has_slots",
        "_mine",
        "_nothing",
        "_slots",
        "_target",
        "_theirs",
        "_trace_layout",
    )

    def __init__(
        self,
        probe: Layout,
        trace: Layout,
        target: Layout,
        mine: Sequence[tuple[int, int]],
        theirs: Sequence[tuple[int, int]],
        *,
        nulls_match: bool = True,
    ) -> None:
        self._target = target
        self._barred = 0 if nulls_match else null_keys(probe)
        self._trace_layout = trace
        self._has_slots = len(target.slots) > 0
        self._fan = 1.0
        self._nothing = ZSet.empty(target)
        self._mine = word_moves(probe, target, mine)
        self._theirs = word_moves(trace, target, theirs)
        self._slots = np.array([target.columns[b].word for a, b in theirs if trace.columns[a].is_slot], dtype=np.int64)
        bits = [(0, *move) for move in bit_moves(probe, target, mine).tolist()]
        bits += [(1, *move) for move in bit_moves(trace, target, theirs).tolist()]
        self._bits = np.array(bits, dtype=np.int64).reshape(len(bits), 5)

    def run(self, probes: ZSet, trace: Trace, *, staged: bool) -> ZSet:
        """All pairs, in the target's layout."""
        if not len(probes.rows):
            return self._nothing
        table = trace.table(staged=staged)
        room = min(int(len(probes.rows) * self._fan) + 8, _MOST_AHEAD)
        while True:
            out = np.empty((room, self._target.width), dtype=np.int64)
            found, needed = kernels.join(
                table,
                probes.hashes,
                probes.rows,
                probes.layout.key_parts,
                self._mine,
                self._trace_layout.key_parts,
                self._theirs,
                self._slots,
                self._bits,
                self._barred,
                self._trace_layout.width,
                out,
            )
            if found < 0:
                raise ConstraintError.weight_overflow()
            if needed <= room:
                break
            room = needed
        self._fan = max(1.0, 0.9 * self._fan, 1.2 * needed / len(probes.rows))
        owners = (*probes.owners, *trace.owners(staged=staged)) if self._has_slots else ()
        return ZSet(self._target, out[:found], owners)


class Join(Node):
    """The inner join of two arranged streams.

    The output has the columns ``left`` of the one and ``right`` of the other, which are pairs (column, name in the
    output).
    """

    kind: ClassVar[Kind] = "join"

    def __init__(
        self,
        left: Arrange,
        right: Arrange,
        left_columns: Sequence[tuple[str, str]],
        right_columns: Sequence[tuple[str, str]],
        *,
        nulls_match: bool = False,
        sql: str = "",
    ) -> None:
        fields = [left.layout.schema.field(a).with_name(b) for a, b in left_columns]
        fields += [right.layout.schema.field(a).with_name(b) for a, b in right_columns]
        layout = Layout(pa.schema(fields))
        detail = "on " + ", ".join(left.layout.names[: left.layout.keys])
        super().__init__([left, right], layout, label="join", detail=detail, sql=sql)
        self._left, self._right = left, right
        of_left = [(left.layout.schema.get_field_index(a), i) for i, (a, _) in enumerate(left_columns)]
        of_right = [
            (right.layout.schema.get_field_index(a), i + len(left_columns)) for i, (a, _) in enumerate(right_columns)
        ]
        self._from_left = Lookup(left.layout, right.layout, layout, of_left, of_right, nulls_match=nulls_match)
        self._from_right = Lookup(right.layout, left.layout, layout, of_right, of_left, nulls_match=nulls_match)
        self.nulls_match = nulls_match
        self.column_pairs = (of_left, of_right)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        left, right = deltas
        one = self._from_left.run(left, self._right.trace, staged=True)
        if not len(right.rows):
            return one
        two = self._from_right.run(right, self._left.trace, staged=False)
        return concatenate([one, two], self.layout) if len(one.rows) else two

    def looked_up(self, side: int, rows: ZSet) -> ZSet:
        """The pairs of rows of one side, 0 for the left, with those that are staged for the other side."""
        if side == 0:
            return self._from_left.run(rows, self._right.trace, staged=True)
        return self._from_right.run(rows, self._left.trace, staged=True)

    def staged(self, side: int) -> list[Run]:
        """What is staged for one side."""
        run = (self._left, self._right)[side].trace.staged
        return [] if run is None else [run]


def null_keys(layout: Layout) -> int:
    """The bits of the first word that say that a column of the key is null."""
    return sum(1 << c.null_bit for c in layout.columns[: layout.keys] if c.nullable)


def without_null_keys(delta: ZSet) -> ZSet:
    """The rows that have no null in their key."""
    mask = null_keys(delta.layout)
    if not mask or not len(delta):
        return delta
    present = (delta.rows[:, 0] & mask) == 0
    return delta if present.all() else delta.filtered(np.flatnonzero(present))
