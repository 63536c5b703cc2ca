"""Top-k: the first rows of each group in its order.

``ORDER BY ... LIMIT k OFFSET n`` is one group, ``row_number() <= k`` the same for each key, and ``rank() <= k`` keeps
all peers of the last. Ties are decided by the whole row, so the answer is determined (doubles among the other columns
by their bits).

The state is the first rows of each group themselves. A change behind them is not looked at; one among them is merged
in, and what is missing then is read from behind the old end. So a change costs k rows and its own, whatever the size of
the group, and rows that died at the front are not met again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from headwater.base.errors import InputError
from headwater.incremental.aggregates.aggregation import Values
from headwater.incremental.operators.cogroup import Groups, Slices, read_groups
from headwater.incremental.operators.over import Over
from headwater.incremental.operators.ranks import Rank, places
from headwater.incremental.operators.reach import Reach
from headwater.incremental.trace import Trace
from headwater.incremental.zset import Positions, ZSet
from headwater.kernels.keys import distinct_keys
from headwater.kernels.window_prefix import DENSE, NUMBERS, RANKS, prefixes
from headwater.kernels.window_rows import clip

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange

__all__ = ["TopK"]

By = Literal["row_number", "rank", "dense_rank"]

_MODES = {"row_number": NUMBERS, "rank": RANKS, "dense_rank": DENSE}


class TopK(Over):
    """The first ``limit`` rows of each key of an arranged stream, after the first ``offset``.

    ``by`` says what the limit counts, and ``ranks`` are columns with the places (row_number, rank or dense_rank).
    """

    def __init__(
        self,
        source: Arrange,
        limit: int,
        *,
        offset: int = 0,
        by: By = "row_number",
        ranks: Sequence[Rank] = (),
        columns: Sequence[tuple[str, str]] | None = None,
        sql: str = "",
    ) -> None:
        if by not in _MODES:
            raise InputError.bad_argument("by", by, f"one of {', '.join(_MODES)}")
        if limit < 0:
            raise InputError.bad_argument("limit", limit, "zero or more rows")
        if offset < 0 or (offset and (by != "row_number" or ranks)):
            raise InputError.bad_argument("offset", offset, "zero, or a number of rows where no ranks are asked for")
        for rank in ranks:
            if rank.what not in _MODES:
                raise InputError.bad_argument("ranks", rank.what, "row_number, rank or dense_rank")
        detail = f"{by} <= {limit}" + (f" after {offset}" if offset else "")
        fields = [r.field for r in ranks]
        super().__init__(source, fields, reach=Reach.whole(), columns=columns, label="top", detail=detail, sql=sql)
        self._limit, self._offset = limit, offset
        self._by: By = by
        self._ranks = tuple(ranks)
        self._first = Trace(source.layout)
        self._peers = np.concatenate([source.layout.key_parts, source.layout.order_parts])

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0].consolidate()
        if not len(delta) or not self._limit:
            return self.empty
        read = self._read_first(delta)
        if not len(read.rows):
            return self.empty
        rows = read.rows.copy()
        rows[:, -1] = read.new - read.old
        changed = ZSet(read.layout, rows[rows[:, -1] != 0], read.owners)
        self._first.stage(changed)
        if self._by == "row_number":
            for weights in (read.old, read.new):
                clip(weights, read.piece, self._offset, self._offset + self._limit)
        return self.change([read])

    def _read_first(self, delta: ZSet) -> Slices:
        """The old and new first rows of the keys touched."""
        layout = delta.layout
        at = np.empty(len(delta), dtype=np.int64)
        count = distinct_keys(delta.hashes, delta.rows, layout.key_parts, False, at)
        keys = delta.filtered(at[:count])
        old = read_groups(self._first, keys)
        rows = old.rows
        rows[:, -1] = old.new
        trace = self.arranged[0].trace
        found, notes = prefixes(
            trace.table(staged=True),
            layout.width,
            keys.hashes,
            rows,
            np.searchsorted(old.piece, np.arange(count + 1)),
            delta.rows,
            np.concatenate([at[:count], [len(delta)]]),
            _MODES[self._by],
            self._limit + self._offset,
            layout.key_parts,
            layout.sort_parts,
            self._peers,
            layout.slots,
        )
        before, after, piece = (np.ascontiguousarray(notes[:, c]) for c in range(3))
        owners = (*delta.owners, *old.owners, *trace.owners(staged=True))
        core = np.ones(len(found), dtype=np.bool_)
        return Slices(layout, found, before, after, core, piece, count, keys.rows, owners)

    def compute(self, groups: Groups, read: Slices) -> list[Values]:
        if not self._ranks:
            return []
        found = places(groups)
        return [Values(_copied(found[rank.what])) for rank in self._ranks]

    def commit(self) -> None:
        self._first.commit()

    def rollback(self) -> None:
        self._first.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"first": self._first}


def _copied(words: Positions) -> Positions:
    return words[:, None].copy()
