"""Over: the rows of a group with new columns, made of the rows around them.

What ``f(...) OVER (PARTITION BY ... ORDER BY ...)`` comes to, whatever ``f`` is: the source's columns, and one or more
that a subclass computes for all copies of the rows in slices, old and new ones in one go. Rows for which the columns
did not change say nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Values
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.moving import Moving
from headwater.incremental.operators.cogroup import Cogroup, Groups, Slices
from headwater.incremental.operators.reach import Reach
from headwater.incremental.packing import Rows
from headwater.incremental.zset import Positions, ZSet
from headwater.kernels.arrange import take
from headwater.kernels.window_rows import differing, starts

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange

__all__ = ["Over", "gathered", "nulls_of", "output_layout"]


def output_layout(source: Layout, columns: Sequence[tuple[str, str]], fields: Sequence[pa.Field]) -> Layout:
    """The layout of some columns of the source, given as (column, name), and new ones;
    keyed where the key comes first.
    """
    kept = [source.schema.field(a).with_name(b) for a, b in columns]
    keyed = [a for a, _ in columns[: source.keys]] == source.names[: source.keys]
    return Layout(pa.schema([*kept, *fields]), keys=source.keys if keyed else 0)


def nulls_of(rows: Rows, placed: Placed) -> npt.NDArray[np.bool_]:
    """Which rows have a null in a column."""
    found: npt.NDArray[np.bool_] = ((rows[:, placed.null_word] >> placed.null_bit) & 1) != 0
    return found


def gathered(groups: Groups, placed: Placed, which: Positions) -> Values:
    """The values of a column in the copies ``which``; null where that is negative."""
    if not len(groups):
        return Values(np.zeros((0, placed.words), dtype=np.int64), np.zeros(0, dtype=np.bool_))
    rows = groups.rows[groups.at[np.maximum(which, 0)]]
    nulls = which < 0
    if placed.nullable:
        nulls |= nulls_of(rows, placed)
    words = rows[:, placed.word : placed.word + placed.words]
    words[nulls] = 0
    return Values(words, nulls)


class Over(Cogroup):
    """Rows with new columns.

    ``columns`` are those of the source that the output has, as (column, name); all of them if it is not given.
    """

    def __init__(
        self,
        source: Arrange,
        fields: Sequence[pa.Field],
        *,
        reach: Reach,
        columns: Sequence[tuple[str, str]] | None = None,
        label: str,
        detail: str = "",
        sql: str = "",
    ) -> None:
        kept = [(n, n) for n in source.layout.names] if columns is None else list(columns)
        layout = output_layout(source.layout, kept, fields)
        super().__init__([source], layout, reach=reach, label=label, detail=detail, sql=sql)
        pairs = [(source.layout.schema.get_field_index(a), i) for i, (a, _) in enumerate(kept)]
        self._moving = Moving(source.layout, layout, pairs, weight=None)
        self._new = layout.columns[len(kept) :]

    @abstractmethod
    def compute(self, groups: Groups, read: Slices) -> list[Values]:
        """The new columns, for all copies; the first half of the groups is the old rows of the slices,
        the second the new ones.
        """

    def change(self, read: Sequence[Slices]) -> ZSet:
        slices = read[0]
        old_at, old_offsets = slices.expanded(slices.old)
        new_at, new_offsets = slices.expanded(slices.new)
        n = len(old_at)
        groups = Groups(
            slices.layout,
            slices.rows,
            np.concatenate([old_at, new_at]),
            np.concatenate([old_offsets, n + new_offsets[1:]]),
            slices.owners,
        )
        found = self.compute(groups, slices)
        for values in found:
            if values.nulls is not None:
                values.words[values.nulls] = 0
        keep = np.zeros(len(groups), dtype=np.bool_)
        size = len(slices.old) + 1
        old_starts, new_starts = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        starts(slices.old, old_starts)
        starts(slices.new, new_starts)
        words = [np.zeros((len(groups), 0), dtype=np.int64), *(v.words for v in found)]
        words += [v.nulls.astype(np.int64)[:, None] for v in found if v.nulls is not None]
        differing(old_starts, new_starts, slices.core, np.concatenate(words, axis=1), keep)
        kept = np.flatnonzero(keep)
        return self._rows(groups, found, kept, n)

    def _rows(self, groups: Groups, found: Sequence[Values], kept: Positions, olds: int) -> ZSet:
        source = np.empty((len(kept), groups.layout.width), dtype=np.int64)
        take(groups.rows, groups.at[kept], source)
        out = self._moving.moved(source)
        del source  # of many rows it is large
        for placed, values in zip(self._new, found, strict=True):
            out[:, placed.word : placed.word + placed.words] = values.words[kept]
            if values.nulls is not None:
                out[:, placed.null_word] |= values.nulls[kept].astype(np.int64) << placed.null_bit
        out[:, -1] = np.where(kept < olds, -1, 1)
        return ZSet(self.layout, out, groups.owners).consolidate()
