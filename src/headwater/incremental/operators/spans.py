"""Spans: rows that look up all rows of their key between two places in a trace, and are joined with them.

The entries are taken as the runs have them: a join multiplies weights and is linear, so entries that cancel need not be
added up first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.base.errors import ConstraintError
from headwater.incremental.moving import Moving
from headwater.incremental.zset import Hashes, ZSet
from headwater.kernels.arrange import take
from headwater.kernels.groups import gather
from headwater.kernels.window_join import pairs

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.packing import Rows
    from headwater.incremental.trace import Trace

__all__ = ["Spans", "moved"]

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_SMALL = 1 << 31


def moved(times: Rows, distance: int) -> Rows:
    """Times later by a distance, or as late as can be; a distance may be any number.

    >>> moved(np.array([1, 2**63 - 1]), 1).tolist() == [2, 2**63 - 1]
    True
    """
    if abs(distance) > _MOST:
        return np.full_like(times, _MOST if distance > 0 else _LEAST)
    if distance > 0:
        return np.where(times > _MOST - distance, _MOST, times + distance)
    return np.where(times < _LEAST - distance, _LEAST, times + distance)


class Spans:
    """Joins probes with the rows of a trace between two places.

    ``mine`` and ``theirs`` are pairs of columns (from, to) that the two sides contribute to the target.
    """

    __slots__ = ("_mine", "_target", "_theirs", "_trace_layout")

    def __init__(
        self,
        probe: Layout,
        trace: Layout,
        target: Layout,
        mine: Sequence[tuple[int, int]],
        theirs: Sequence[tuple[int, int]],
    ) -> None:
        self._target = target
        self._trace_layout = trace
        self._mine = Moving(probe, target, mine, weight=None)
        self._theirs = Moving(trace, target, theirs, weight=None)

    def run(
        self,
        probes: ZSet,
        trace: Trace,
        span: tuple[Rows, Rows],
        *,
        hashes: Hashes,
        parts: Rows,
        staged: bool,
        reaching: tuple[int, Rows] | None = None,
    ) -> ZSet:
        """All pairs; ``span`` are places in the trace's layout, both included.

        ``reaching`` leaves those whose row of the trace has at least so much in a word, for each probe.
        """
        layout = self._trace_layout
        table = trace.table(staged=staged)
        which, picks = pairs(table, layout.width, hashes, *span, layout.key_parts, parts)
        rows = np.empty((len(picks), layout.width), dtype=np.int64)
        gather(table, layout.width, picks, layout.slots, rows)
        if reaching is not None:
            word, least = reaching
            keep = np.flatnonzero(rows[:, word] >= least[which])
            rows, which = rows[keep], which[keep]
        mine = np.empty((len(which), probes.layout.width), dtype=np.int64)
        take(probes.rows, which, mine)
        out = self._mine.moved(mine)
        self._theirs.add_to(rows, out)
        out[:, -1] = _product(mine[:, -1], rows[:, -1])
        return ZSet(self._target, out, (*probes.owners, *trace.owners(staged=staged)))


def _product(a: Rows, b: Rows) -> Rows:
    if not len(a) or max(np.abs(a).max(), np.abs(b).max()) < _SMALL:
        return a * b
    exact = [int(x) * int(y) for x, y in zip(a, b, strict=True)]
    if any(not _LEAST <= p <= _MOST for p in exact):
        raise ConstraintError.weight_overflow()
    return np.array(exact, dtype=np.int64)
