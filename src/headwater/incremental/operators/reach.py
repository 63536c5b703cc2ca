"""Reach: which rows of a group a change can touch.

A function of a whole group is right for every operator, and costs the whole group for each change. Most operators on
ordered rows need less: the lag of a row depends on the row before it. A `Reach` says so, by rows, by values of the
order column, or by neighbours, and the node reads only slices (`headwater.kernels.groups`). It never changes an answer,
only what it costs.

A function that looks ``preceding`` rows back and ``following`` ahead has the results of a change's ``preceding``
followers and ``following`` predecessors touched by it, and to compute those needs as many rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.base.errors import UnsupportedError
from headwater.kernels.groups import BY_CHAIN, BY_ROWS, BY_VALUE

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout

__all__ = ["Reach", "order_value"]

_LOW = (1 << 64) - 1
_SIGN = 1 << 63
_MOST = (1 << 127) - 1


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the results of a change go; None is endless.

    ``peers`` is how many columns of the order make rows peers, None for all: the others only say in which order peers
    are taken.

    >>> Reach.rows(2, 0)
    Reach(mode=0, core=(0, 2), context=(2, 0), peers=None)
    """

    mode: int | None
    core: tuple[int | None, int | None] = (0, 0)
    context: tuple[int | None, int | None] = (0, 0)
    peers: int | None = None

    @classmethod
    def whole(cls) -> Reach:
        """Every change touches the whole group."""
        return cls(None)

    @classmethod
    def rows(cls, preceding: int | None, following: int | None) -> Reach:
        """Results are made of so many rows before and after."""
        before, after = _known(following), _known(preceding)
        return cls(BY_ROWS, (before, after), (after, before))

    @classmethod
    def values(cls, preceding: int | None, following: int | None, peers: int | None = None) -> Reach:
        """Results are made of the rows whose order column is so much less, or more; with zeros, of the peers."""
        before, after = _known(following), _known(preceding)
        return cls(BY_VALUE, (before, after), (after, before), peers)

    @classmethod
    def suffix(cls) -> Reach:
        """Results of all rows after a change are touched."""
        return cls(BY_ROWS, (0, None), (0, 0))

    @classmethod
    def chain(cls, gap: int) -> Reach:
        """Results are made of neighbours, as long as they are not more than ``gap`` apart."""
        return cls(BY_CHAIN, (gap, gap))

    @property
    def extent(self) -> npt.NDArray[np.int64]:
        """The four bounds, for the kernel."""
        out = np.zeros((4, 3), dtype=np.int64)
        for i, bound in enumerate((*self.core, *self.context)):
            if bound is None:
                out[i, 0] = 1
            else:
                capped = min(bound, _MOST)
                out[i, 1] = capped >> 64
                out[i, 2] = _signed(capped & _LOW)
        return out

    def __str__(self) -> str:
        if self.mode is None:
            return "the whole group"
        what = {BY_ROWS: "rows", BY_VALUE: "in value", BY_CHAIN: "between neighbours"}[self.mode]
        before, after = ("all" if b is None else b for b in self.core)
        return f"{before} before and {after} after, {what}"


def _known(bound: int | None) -> int | None:
    return None if bound is None else max(bound, 0)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= _SIGN else word


def order_value(layout: Layout, peers: int | None = None) -> npt.NDArray[np.int64]:
    """The words of the one order column that can be added to: (rank of nulls or -1, value, low word or -1)."""
    columns = len(layout.order) if peers is None else peers
    if columns != 1:
        why = f"the frame has a distance, and the order has {columns} columns"
        raise UnsupportedError.operation("RANGE", why, "order by one number, date or timestamp")
    column = layout.column(layout.order[0].column)
    if column.kind not in {"word", "pair"}:
        hint = "order by a whole number, decimal, date or timestamp to have distances"
        raise UnsupportedError.column_type(column.name, str(column.dtype), hint)
    words = [int(w) for w in layout.first_order_parts(1)[:, 0]]
    rank = words.pop(0) if column.nullable else -1
    return np.array([rank, words[0], words[1] if len(words) > 1 else -1], dtype=np.int64)
