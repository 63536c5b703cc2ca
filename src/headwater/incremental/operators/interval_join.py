"""Interval join: pairs with equal keys where the one's time is in the other's interval.

``a.key = b.key AND b.t BETWEEN a.lo AND a.hi``. A changed interval reads the times between its ends, a slice of the
right's trace. A changed time asks which intervals have it, and for those no order is good: sorted by their begins, the
ones that matter are anywhere before. So intervals are kept in **classes** by their length: class ``c`` has those
shorter than ``2^c`` and not shorter than half of that (`Lengths` adds the class as a column, and the left is arranged
by key and class). An interval of class ``c`` that has ``t`` begins at most ``2^c`` before it, a slice; at least about
half of what is read there matches where intervals are spread evenly. There are at most 65 classes, and only those that
there ever were are asked, so a changed time costs a binary search in each, and about twice the pairs it finds.

Nulls match nothing, and intervals that end before they begin have no times: both are left out of the left's state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout, Order
from headwater.incremental.moving import Moving
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.operators.over import nulls_of
from headwater.incremental.operators.places import Places, time_column
from headwater.incremental.operators.range_join import without_nulls
from headwater.incremental.operators.spans import Spans, moved
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from headwater.incremental.packing import Rows

__all__ = ["CLASS", "IntervalJoin", "Lengths", "intervals"]

CLASS = "length class"
"""The column that `Lengths` adds."""


def _bit_lengths(values: npt.NDArray[np.uint64]) -> Rows:
    """How many bits numbers have.

    >>> _bit_lengths(np.array([0, 1, 5, 2**64 - 1], dtype=np.uint64)).tolist()
    [0, 1, 3, 64]
    """
    powers = np.array([1 << k for k in range(64)], dtype=np.uint64)
    return np.searchsorted(powers, values, side="right").astype(np.int64)


class Lengths(Node):
    """Rows with intervals, and the class of their length; rows with a null in an end, or with the end first,
    are left out.
    """

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, lo: str, hi: str) -> None:
        schema = source.layout.schema
        self._ends = source.layout.column(lo), source.layout.column(hi)
        if self._ends[0].dtype != self._ends[1].dtype or self._ends[0].kind != "word":
            hint = "both ends are timestamps, dates, whole numbers, or decimals of at most 18 digits"
            raise UnsupportedError.column_type(hi, str(self._ends[1].dtype), hint)
        layout = Layout(pa.schema([*schema, pa.field(CLASS, pa.int64(), nullable=False)]))
        super().__init__([source], layout, label="lengths", detail=f"of {lo} to {hi}")
        pairs = [(i, i) for i in range(len(schema))]
        self._moving = Moving(source.layout, layout, pairs)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        lo, hi = (delta.rows[:, end.word] for end in self._ends)
        keep = lo <= hi
        for end in self._ends:
            keep &= ~nulls_of(delta.rows, end)
        delta = delta.filtered(np.flatnonzero(keep))
        lo, hi = (delta.rows[:, end.word] for end in self._ends)
        out = self._moving.moved(delta.rows)
        out[:, self.layout.columns[-1].word] = _bit_lengths((hi - lo).view(np.uint64))
        return ZSet(self.layout, out, delta.owners)


def intervals(source: Node, keys: Sequence[str], lo: str, hi: str) -> Arrange:
    """A stream of intervals, arranged as `IntervalJoin` wants its left side: by key and class,
    ordered by the begins.
    """
    lengths = Lengths(source, lo, hi)
    rest = [n for n in source.layout.names if n not in keys]
    return Arrange(lengths, Arrangement(lengths.layout, [*keys, CLASS, *rest], keys=len(keys) + 1, order=[Order(lo)]))


class IntervalJoin(Node):
    """The join of intervals (made by `intervals`) with times, arranged by the same key and ordered by the time."""

    kind: ClassVar[Kind] = "join"
    everywhere: ClassVar[bool] = True

    def __init__(
        self,
        left: Arrange,
        right: Arrange,
        left_columns: Sequence[tuple[str, str]],
        right_columns: Sequence[tuple[str, str]],
        *,
        hi: str,
        sql: str = "",
    ) -> None:
        lo, time = time_column(left.layout), time_column(right.layout)
        keys = right.layout.keys
        if lo.dtype != time.dtype or left.layout.names[keys : keys + 1] != [CLASS]:
            raise InputError.bad_argument("right", right.detail, "the key and the type of the intervals on the left")
        fields = [left.layout.schema.field(a).with_name(b) for a, b in left_columns]
        fields += [right.layout.schema.field(a).with_name(b) for a, b in right_columns]
        layout = Layout(pa.schema(fields))
        super().__init__(
            [left, right], layout, label="interval join", detail=f"{time.name} from {lo.name} to {hi}", sql=sql
        )
        self._left, self._right = left, right
        self._lo, self._time, self._hi = lo, time, left.layout.column(hi)
        self._class = left.layout.column(CLASS)
        of_left = [(left.layout.schema.get_field_index(a), i) for i, (a, _) in enumerate(left_columns)]
        of_right = [
            (right.layout.schema.get_field_index(a), len(of_left) + i) for i, (a, _) in enumerate(right_columns)
        ]
        self._from_left = Spans(left.layout, right.layout, layout, of_left, of_right)
        self._from_right = Spans(right.layout, left.layout, layout, of_right, of_left)
        self._begins = Places(left.layout, right.layout, keys=keys)
        self._ends = Places(left.layout, right.layout, hi, keys=keys)
        self._in_left = Places(right.layout, left.layout)
        self._classes = Trace(Layout(pa.schema([pa.field(CLASS, pa.int64(), nullable=False)])))

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        left = without_nulls(deltas[0], [])
        right = without_nulls(deltas[1], [self._time])
        one = self._of_intervals(left) if len(left) else self.empty
        two = self._of_times(right) if len(right) else self.empty
        self._note(left)
        return concatenate([one, two], self.layout)

    def _of_intervals(self, probes: ZSet) -> ZSet:
        lo = self._begins.of(probes.rows)
        return self._from_left.run(
            probes,
            self._right.trace,
            (lo, self._ends.of(probes.rows)),
            hashes=self._begins.hashes(lo),
            parts=self._begins.parts,
            staged=True,
        )

    def _of_times(self, probes: ZSet) -> ZSet:
        found = []
        for one in self._classes.zset().rows[:, 1]:
            hi = self._in_left.of(probes.rows)
            hi[:, self._class.word] = one
            lo = hi.copy()
            times = probes.rows[:, self._time.word]
            self._in_left.set_time(lo, moved(times, 1 - (1 << int(one))))
            found.append(
                self._from_right.run(
                    probes,
                    self._left.trace,
                    (lo, hi),
                    hashes=self._in_left.hashes(lo),
                    parts=self._in_left.parts,
                    staged=False,
                    reaching=(self._hi.word, times),
                )
            )
        return concatenate(found, self.layout)

    def _note(self, left: ZSet) -> None:
        """Stage the classes that are new."""
        known = self._classes.zset().rows[:, 1]
        new = np.setdiff1d(left.rows[:, self._class.word], known)
        layout = self._classes.layout
        rows = np.zeros((len(new), layout.width), dtype=np.int64)
        rows[:, 1] = new
        rows[:, -1] = 1
        self._classes.stage(ZSet(layout, rows))

    def commit(self) -> None:
        self._classes.commit()

    def rollback(self) -> None:
        self._classes.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"classes": self._classes}
