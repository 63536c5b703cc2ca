"""The join of two nested streams: pairs belong to the later of the two iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.nesting.operator import NestedOperator
from headwater.incremental.nesting.timed import ITERATION, Timed, stamped_layout
from headwater.incremental.operators.join import Join, Lookup, without_null_keys
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["NestedJoin"]


class NestedJoin(NestedOperator):
    """A `Join` inside a nest."""

    def __init__(self, node: Join) -> None:
        self.node: Join = node
        left, right = (arrange.layout for arrange in node.inputs)
        self._left, self._right = Timed(left), Timed(right)
        self._target = Layout(node.layout.schema.append(pa.field(ITERATION, pa.int64(), nullable=False)))
        self._bare = Timed(node.layout)
        of_left, of_right = node.column_pairs
        last = len(node.layout.columns)
        stamped_left, stamped_right = stamped_layout(left), stamped_layout(right)
        self._from_left = Lookup(left, stamped_right, self._target, of_left, [*of_right, (len(right.columns), last)])
        self._from_right = Lookup(right, stamped_left, self._target, of_right, [*of_left, (len(left.columns), last)])
        self._future: dict[int, list[ZSet]] = {}

    def step(self, deltas: Sequence[ZSet], iteration: int) -> ZSet:
        left, right = deltas
        if not self.node.nulls_match:
            left, right = without_null_keys(left), without_null_keys(right)
        found = []
        if len(left):
            found += [
                self._from_left.run(left, trace, staged=False) for trace in (self._right.past, self._right.present)
            ]
        self._left.add(left, iteration)
        if len(right):
            found += [
                self._from_right.run(right, trace, staged=False) for trace in (self._left.past, self._left.present)
            ]
        self._right.add(right, iteration)
        now = self._future.pop(iteration, [])
        for pairs in found:
            if len(pairs):
                now.append(self._sent(pairs, iteration))
        return concatenate(now, self.node.layout)

    def _sent(self, pairs: ZSet, iteration: int) -> ZSet:
        """The pairs for now; those of later iterations are put aside."""
        times = pairs.rows[:, self._target.columns[-1].word]
        for later in np.unique(times[times > iteration]).tolist():
            some = self._bare.plain(pairs.filtered(np.flatnonzero(times == later)))
            self._future.setdefault(later, []).append(some)
        return self._bare.plain(pairs.filtered(np.flatnonzero(times <= iteration)))

    def waiting(self) -> int | None:
        return min(self._future, default=None)

    def commit(self) -> None:
        self._left.commit()
        self._right.commit()
        self._future = {}

    def rollback(self) -> None:
        self._left.rollback()
        self._right.rollback()
        self._future = {}

    def traces(self) -> Mapping[str, Trace]:
        return {"left": self._left.past, "right": self._right.past}
