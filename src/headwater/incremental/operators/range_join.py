"""Range join: pairs with equal keys whose times are at most so far apart.

``a.key = b.key AND a.t - below <= b.t AND b.t <= a.t + above``. Bilinear as every join, and symmetric: seen from ``b``,
the times of ``a`` are in a range as well. So each changed row reads a slice of the other side's trace, by binary search
in each run, and costs the pairs it finds. Nulls in the key or in the time match nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.operators.frames import length_words, units_of
from headwater.incremental.operators.join import without_null_keys
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.operators.over import nulls_of
from headwater.incremental.operators.places import Places, time_column
from headwater.incremental.operators.spans import Spans, moved
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange

__all__ = ["RangeJoin", "without_nulls"]

Distance = int | Decimal | timedelta

_ENDLESS = 1 << 64


def without_nulls(delta: ZSet, columns: Sequence[Placed]) -> ZSet:
    """The rows that have no null in their key, nor in the columns."""
    delta = without_null_keys(delta)
    for column in columns:
        if column.nullable and len(delta):
            delta = delta.filtered(np.flatnonzero(~nulls_of(delta.rows, column)))
    return delta


class RangeJoin(Node):
    """The join of two streams, arranged by the same key and ordered by their times, on times near each other.

    ``below`` and ``above`` say how much less and more the time on the right may be than that on the left; None is
    endless.
    """

    kind: ClassVar[Kind] = "join"

    def __init__(
        self,
        left: Arrange,
        right: Arrange,
        left_columns: Sequence[tuple[str, str]],
        right_columns: Sequence[tuple[str, str]],
        *,
        below: Distance | None,
        above: Distance | None,
        sql: str = "",
    ) -> None:
        one, two = time_column(left.layout), time_column(right.layout)
        if one.dtype != two.dtype or left.layout.keys != right.layout.keys:
            raise InputError.bad_argument(
                "right", right.detail, "a key and a time of the same types as those of the left"
            )
        if one.kind != "word":
            hint = "distances are of timestamps, dates, whole numbers, and decimals of at most 18 digits"
            raise UnsupportedError.column_type(one.name, str(one.dtype), hint)
        self._below = None if below is None else units_of(one.dtype, below)
        self._above = None if above is None else units_of(one.dtype, above)
        self.reach = (self._below, self._above)
        fields = [left.layout.schema.field(a).with_name(b) for a, b in left_columns]
        fields += [right.layout.schema.field(a).with_name(b) for a, b in right_columns]
        layout = Layout(pa.schema(fields))
        detail = f"{two.name} from {one.name} - {self._below} to {one.name} + {self._above}"
        super().__init__([left, right], layout, label="range join", detail=detail, sql=sql)
        far = [None if d is None else length_words(one.dtype, d) for d in self.reach]
        low, high = ("any" if d is None else f"{one.name} {sign} {d}" for sign, d in zip("-+", far, strict=True))
        self.shown = f"{two.name} from {low} to {high}"
        self._left, self._right = left, right
        self._times = (one, two)
        of_left = [(left.layout.schema.get_field_index(a), i) for i, (a, _) in enumerate(left_columns)]
        of_right = [
            (right.layout.schema.get_field_index(a), len(of_left) + i) for i, (a, _) in enumerate(right_columns)
        ]
        self._from_left = Spans(left.layout, right.layout, layout, of_left, of_right)
        self._from_right = Spans(right.layout, left.layout, layout, of_right, of_left)
        self._in_right = Places(left.layout, right.layout)
        self._in_left = Places(right.layout, left.layout)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        left, right = (without_nulls(d, [t]) for d, t in zip(deltas, self._times, strict=True))
        one = self._looked_up(left, 0, self._below, self._above)
        two = self._looked_up(right, 1, self._above, self._below)
        return concatenate([one, two], self.layout)

    def _looked_up(self, probes: ZSet, side: int, below: int | None, above: int | None) -> ZSet:
        if not len(probes):
            return self.empty
        spans, places, other = (
            (self._from_left, self._in_right, self._right)
            if side == 0
            else (self._from_right, self._in_left, self._left)
        )
        lo = places.of(probes.rows)
        hi = lo.copy()
        times = probes.rows[:, self._times[side].word]
        places.set_time(lo, moved(times, -_ENDLESS if below is None else -below))
        places.set_time(hi, moved(times, _ENDLESS if above is None else above))
        return spans.run(
            probes,
            other.trace,
            (lo, hi),
            hashes=places.hashes(lo),
            parts=places.parts,
            staged=side == 0,
        )
