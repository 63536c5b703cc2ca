"""Any operator that works key by key, nested.

At an iteration the output for a key is f(its rows up to that iteration). What an epoch changes there is f(new rows) -
f(old rows), and what belongs to the iteration is that, less the same for the iteration before. A key has to be looked
at when it changes, and in the later iterations in which it had changed in earlier epochs: there the old and the new
history meet.

``f`` is the ordinary operator with no state: it is stepped with all rows of the keys, and rolled back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout
from headwater.incremental.nesting.operator import NestedOperator
from headwater.incremental.nesting.timed import Timed
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.node import Node
from headwater.incremental.trace import Matches, Trace
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["NestedKeyed"]


class NestedKeyed(NestedOperator):
    """A keyed operator inside a nest: ``keys`` are the columns of the key in each input."""

    def __init__(self, node: Node, keys: Sequence[Sequence[str]]) -> None:
        self.node = node
        self._arrangements = []
        self._timed = []
        for source, names in zip(node.inputs, keys, strict=True):
            columns = [*names, *(c for c in source.layout.names if c not in names)]
            arrangement = Arrangement(source.layout, columns, keys=len(names))
            self._arrangements.append(arrangement)
            self._timed.append(Timed(arrangement.target))
        self._back = [
            Arrangement(t.layout, source.layout.names, keys=source.layout.keys, order=source.layout.order)
            for t, source in zip(self._timed, node.inputs, strict=True)
        ]
        first = self._timed[0].layout
        self._key_layout = Layout(pa.schema([first.schema.field(i) for i in range(first.keys)]), keys=first.keys)
        self._to_key = [Arrangement(t.layout, t.layout.names[: t.layout.keys], keys=t.layout.keys) for t in self._timed]
        self._interest: dict[int, list[ZSet]] = {}

    def step(self, deltas: Sequence[ZSet], iteration: int) -> ZSet:
        arranged = [a.apply(d) for a, d in zip(self._arrangements, deltas, strict=True)]
        keys = self._interest.pop(iteration, [])
        for timed, to_key, delta in zip(self._timed, self._to_key, arranged, strict=True):
            timed.add(delta, iteration)
            if len(delta):
                keys.append(self._rekeyed(to_key.apply(delta)))
        if not keys:
            return self.node.empty
        touched = self._once(keys)
        found = [timed.find(touched) for timed in self._timed]
        self._take_interest(touched, found, iteration)
        out = []
        for when, sign in ((iteration, 1), (iteration - 1, -1)):
            if when < 0:
                continue
            old = [t.until(past, when) for t, (past, _) in zip(self._timed, found, strict=True)]
            new = [
                t.sum([o, t.until(present, when)]) for t, o, (_, present) in zip(self._timed, old, found, strict=True)
            ]
            for rows, weight in ((new, sign), (old, -sign)):
                result = self._computed(rows)
                out.append(result if weight > 0 else -result)
        return concatenate(out, self.node.layout).consolidate()

    def _rekeyed(self, keys: ZSet) -> ZSet:
        return ZSet(self._key_layout, keys.rows, keys.owners)

    def _once(self, keys: list[ZSet]) -> ZSet:
        """The different keys."""
        every = concatenate(keys, self._key_layout)
        rows = every.rows.copy()
        rows[:, -1] = 1
        return ZSet(self._key_layout, rows, every.owners).consolidate()

    def _take_interest(self, touched: ZSet, found: list[tuple[Matches, Matches]], iteration: int) -> None:
        for timed, (past, _) in zip(self._timed, found, strict=True):
            times = timed.iterations(past.rows)
            for later in np.unique(times[times > iteration]).tolist():
                which = np.unique(past.which[times == later])
                self._interest.setdefault(later, []).append(touched.filtered(which))

    def _computed(self, rows: list[ZSet]) -> ZSet:
        if not any(len(r) for r in rows):
            return self.node.empty
        given = []
        for back, r, source in zip(self._back, rows, self.node.inputs, strict=True):
            plain = back.apply(r.consolidate())
            given.append(source.staged(plain) if isinstance(source, Arrange) else plain)
        try:
            return self.node.step(given)
        finally:
            self.node.rollback()
            for source in self.node.inputs:
                source.rollback()

    def waiting(self) -> int | None:
        return min(self._interest, default=None)

    def commit(self) -> None:
        for timed in self._timed:
            timed.commit()
        self._interest = {}

    def rollback(self) -> None:
        for timed in self._timed:
            timed.rollback()
        self._interest = {}

    def traces(self) -> Mapping[str, Trace]:
        return {f"input {i}": t.past for i, t in enumerate(self._timed)}
