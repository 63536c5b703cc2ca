"""Settled rows: which rows of an arrangement no coming row can touch, given the mark that coming rows are not below.

An operator that reads an arrangement says for it what it will never look at again. `Below` is the plain case: rows
below the mark. The others look at all rows of a key, with weights that are summed, so that what counts is alive:
`Newest` keeps the last row below the mark, because whoever asks for the row before a coming time is given it; `Closed`
lets a session go as a whole, when its last row is so far behind that nothing can follow it.

What lies below a mark can neither come nor be taken back, so a row that is settled stays settled, and any of the
settled rows may go at any time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.incremental.operators.over import nulls_of

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.operators.watermark import Mark
    from headwater.incremental.sweep import Gone, Mask
    from headwater.incremental.zset import Positions, ZSet

__all__ = ["Below", "Closed", "Newest", "Settled"]


@dataclass(frozen=True, slots=True)
class Settled(ABC):
    """What an operator does not look at again: it depends on a column of the arrangement, and on its mark."""

    column: str
    mark: Mark

    @abstractmethod
    def gone(self, layout: Layout, shard: int, least: int) -> Gone:
        """The rule for the rows of a shard, if the mark is at ``least``; it is asked later, on another thread."""

    def __str__(self) -> str:
        return f"below {self.column}"


@dataclass(frozen=True, slots=True)
class Below(Settled):
    """The rows below the mark."""

    def gone(self, layout: Layout, shard: int, least: int) -> Gone:
        return lambda rows, _: below(rows, self.column, least)


@dataclass(frozen=True, slots=True)
class Newest(Settled):
    """The rows below the mark but the last that is alive, and with ``times=2`` the last before the time of that one."""

    times: int = 1

    def gone(self, layout: Layout, shard: int, least: int) -> Gone:
        word = layout.column(self.column).word

        def found(rows: ZSet, begins: Positions) -> Mask:
            past = below(rows, self.column, least)
            alive = past & (rows.weights > 0)
            times = rows.rows[:, word]
            at = np.arange(len(rows))
            sizes = np.diff(begins, append=len(rows))
            last = np.full(len(rows), -1)
            for i in range(self.times):
                if i:
                    alive &= times < times[last]  # where there is no last row, none is alive
                last = np.repeat(np.maximum.reduceat(np.where(alive, at, -1), begins), sizes)
            return past & (at < last)

        return found

    def __str__(self) -> str:
        return f"below {self.column} but the newest"


@dataclass(frozen=True, slots=True)
class Closed(Settled):
    """The rows of sessions that no coming row can follow within the gap."""

    gap: int

    def gone(self, layout: Layout, shard: int, least: int) -> Gone:
        time = layout.column(self.column)

        def found(rows: ZSet, begins: Positions) -> Mask:
            alive = rows.weights > 0
            out = below(rows, self.column, least) & ~alive
            known = np.flatnonzero(alive & ~nulls_of(rows.rows, time))
            if not len(known):
                return out
            times = rows.rows[known, time.word]
            key = np.searchsorted(begins, known, side="right")
            # Times rise within a key, so their distance fits a number without a sign.
            follows = (key[1:] == key[:-1]) & (np.diff(times).view(np.uint64) <= np.uint64(self.gap))
            first = np.flatnonzero(np.append(True, ~follows))
            ends = np.append(first[1:], len(known))
            closed = times[ends - 1] < least - self.gap
            out[known] = np.repeat(closed, ends - first)
            return out

        return found

    def __str__(self) -> str:
        return f"sessions closed {self.gap} below {self.column}"


def below(rows: ZSet, column: str, least: int) -> Mask:
    """Which rows have a value in a column, and one below ``least``."""
    place = rows.layout.column(column)
    found: Mask = (rows.rows[:, place.word] < least) & ~nulls_of(rows.rows, place)
    return found
