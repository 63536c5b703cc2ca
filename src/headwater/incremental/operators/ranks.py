"""Ranks: row_number, rank, dense_rank, percent_rank, cume_dist and ntile over the order of a group.

A change moves everything behind it: row_number, rank and dense_rank of the rows after the first change, which is what
is read and what the output changes by. Where those begin to count is remembered: a trace of the places of all rows is
the state, and the row before the change is looked up in it. So rows that come at the end cost what they are, however
many are before them. percent_rank, cume_dist and ntile depend on the number of rows in the group, so they are computed
for the whole group with every change; with one of them no state is needed.

Who only wants the first places asks for a limit instead: `headwater.incremental.operators.topk`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.incremental.aggregates.aggregation import Values
from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.cogroup import Groups, Slices
from headwater.incremental.operators.over import Over
from headwater.incremental.operators.reach import Reach
from headwater.incremental.trace import Trace
from headwater.incremental.zset import Positions, ZSet
from headwater.kernels.asof import nearest
from headwater.kernels.hash import hash_rows
from headwater.kernels.window_ranks import ranked, tiles
from headwater.kernels.window_rows import starts as copy_starts

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange

__all__ = ["Rank", "Ranks", "places"]

What = Literal["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"]
Places = dict[str, Positions]

_BY_PLACE = {"row_number", "rank", "dense_rank"}
_STATE = ("row_number", "rank", "dense_rank")
_NO_START = np.zeros((1, 3), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Rank:
    """One column: which rank, and its name.

    >>> Rank("n", "row_number").field
    pyarrow.Field<n: int32 not null>
    """

    name: str
    what: What
    buckets: int = 1

    @property
    def field(self) -> pa.Field:
        """The column of the output, in Spark's type."""
        if self.buckets < 1:
            raise InputError.bad_argument("ntile", self.buckets, "at least one bucket")
        real = self.what in {"percent_rank", "cume_dist"}
        return pa.field(self.name, pa.float64() if real else pa.int32(), nullable=False)


def places(
    groups: Groups, starts: Positions = _NO_START, befores: Positions | None = None, before: Layout | None = None
) -> Places:
    """The row number, rank and dense rank of each copy."""
    out = {what: np.empty(len(groups), dtype=np.int64) for what in _STATE}
    parts = groups.layout.order_parts
    ranked(
        groups.rows,
        groups.at,
        groups.offsets,
        parts,
        np.ascontiguousarray(starts),
        groups.rows if befores is None else befores,
        parts if before is None else before.order_parts,
        *out.values(),
    )
    return out


class Ranks(Over):
    """Ranks over an arranged stream."""

    def __init__(
        self,
        source: Arrange,
        ranks: Sequence[Rank],
        *,
        columns: Sequence[tuple[str, str]] | None = None,
        sql: str = "",
    ) -> None:
        whole = any(r.what not in _BY_PLACE for r in ranks)
        reach = Reach.whole() if whole else Reach.suffix()
        detail = ", ".join(f"{r.name} = {r.what}({r.buckets if r.what == 'ntile' else ''})" for r in ranks)
        made = [r.field for r in ranks]
        super().__init__(source, made, reach=reach, columns=columns, label="ranks", detail=detail, sql=sql)
        self._ranks = tuple(ranks)
        layout = source.layout
        # Null bits come after all columns in a layout's order. A copy of them comes before the places here, so that
        # rows stand in the state as they stand in the source, whatever their places were.
        self._nulls = layout.columns[0].word if layout.columns else 1
        names = [*(f"nulls {i}" for i in range(self._nulls)), *_STATE]
        fields = [*layout.schema, *(pa.field(f"{i} {n}", pa.int64(), nullable=False) for i, n in enumerate(names))]
        state = Layout(pa.schema(fields), keys=layout.keys, order=layout.order)
        self._state_layout = state
        self._state = None if whole else Trace(state)
        shared = len(layout.columns)
        pairs = [(i, i) for i in range(shared)]
        self._to_state = Moving(layout, state, pairs, weight=None)
        self._null_words = [c.word for c in state.columns[shared : shared + self._nulls]]
        rest = [p for c in state.columns[: shared + self._nulls] for p in c.parts]
        self._place_parts = np.concatenate([state.key_parts, state.order_parts, np.array(rest, dtype=np.int64)])

    def compute(self, groups: Groups, read: Slices) -> list[Values]:
        if self._state is None:
            found = places(groups)
        else:
            starts, befores = self._starts(read, self._state)
            found = places(groups, starts, befores, self._state_layout)
            self._remember(read, found, self._state)
        return [self._values(rank, groups, found) for rank in self._ranks]

    def _starts(self, read: Slices, state: Trace) -> tuple[Positions, Positions]:
        """The places of the rows before the first changes, and those rows."""
        layout = self._state_layout
        probes = self._in_state(read.firsts)
        n = len(probes)
        there = np.zeros(n, dtype=np.bool_)
        found = np.zeros((n, layout.width), dtype=np.int64)
        nearest(
            state.table(),
            layout.width,
            hash_rows(probes, layout.key_parts),
            probes,
            np.ones(n, dtype=np.bool_),
            self._place_parts,
            layout.key_parts,
            layout.sort_parts,
            layout.slots,
            True,
            True,
            there,
            found,
        )
        at = [layout.columns[i].word for i in range(-3, 0)]
        return found[:, at], found

    def _in_state(self, rows: Positions) -> Positions:
        out = self._to_state.moved(rows)
        out[:, self._null_words] = rows[:, : self._nulls]
        return out

    def _remember(self, read: Slices, found: Places, state: Trace) -> None:
        """Stage the places of the last copy of each row, where they changed."""
        n = len(read.rows)
        ends = np.empty((2, n + 1), dtype=np.int64)
        copy_starts(read.old, ends[0])
        copy_starts(read.new, ends[1])
        words = [self._state_layout.columns[i].word for i in range(-3, 0)]
        stacked = np.stack([found[what] for what in _STATE], axis=1) if n else np.zeros((0, 3), dtype=np.int64)
        old = stacked[np.maximum(ends[0, 1:] - 1, 0)]
        new = stacked[np.maximum(ends[0, n] + ends[1, 1:] - 1, 0)] if n else old
        before, after = read.old > 0, read.new > 0
        same = before & after & (old == new).all(axis=1)
        parts = []
        for values, live, weight in ((old, before, -1), (new, after, 1)):
            which = np.flatnonzero(live & ~same)
            rows = self._in_state(read.rows[which])
            rows[:, words] = values[which]
            rows[:, -1] = weight
            parts.append(rows)
        state.stage(ZSet(self._state_layout, np.concatenate(parts), read.owners))

    def _values(self, rank: Rank, groups: Groups, found: Places) -> Values:
        if rank.what in _BY_PLACE:
            return Values(found[rank.what][:, None].copy())
        sizes = np.diff(groups.offsets)
        if rank.what == "ntile":
            out = np.empty(len(groups), dtype=np.int64)
            tiles(groups.offsets, rank.buckets, out)
            return Values(out[:, None])
        count = np.repeat(sizes, sizes).astype(np.float64)
        if rank.what == "percent_rank":
            share = (found["rank"] - 1) / np.maximum(count - 1, 1)
        else:
            share = self._last_peers(groups, found) / np.maximum(count, 1)
        return Values(share.view(np.int64)[:, None].copy())

    @staticmethod
    def _last_peers(groups: Groups, found: Places) -> Positions:
        """The row number of the last peer of each copy."""
        numbers, dense = found["row_number"], found["dense_rank"]
        last = np.ones(len(groups), dtype=np.bool_)
        last[:-1] = (dense[1:] != dense[:-1]) | (numbers[1:] == 1)
        at = np.flatnonzero(last)
        return numbers[at[np.searchsorted(at, np.arange(len(groups)))]]

    def commit(self) -> None:
        if self._state is not None:
            self._state.commit()

    def rollback(self) -> None:
        if self._state is not None:
            self._state.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {} if self._state is None else {"places": self._state}
