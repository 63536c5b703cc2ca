"""Merges: which runs of a trace become one, and in how many pieces.

Each refresh adds runs, and who looks a key up asks all of them. So where a trace has too many of about one size, they
are merged, with all smaller ones. Each shard of a refresh writes its own runs, so more shards may leave more of them;
and rows that are more than one shard's stay in several runs, or a small refresh would merge what a large one left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater.incremental.manifest import RunEntry
from headwater.incremental.views.spark.choice import SHARD_ROWS

__all__ = ["due", "is_light", "shards_for"]

_CLASS_BITS = 3
_SPLIT = 2
"""So many runs may rows be in for each that they need."""


def due(runs: Sequence[RunEntry], alike: int, shards: int) -> tuple[RunEntry, ...]:
    """The runs that are merged now: those of a class of sizes with too many, and all smaller ones.

    A class has too many with more than ``alike`` for each shard, and two for each shard that its rows would fill.

    >>> large, small = (RunEntry("a.run", 400_000, 0), RunEntry("b.run", 100, 0))
    >>> [len(due([large] * 40 + [small] * n, 6, 1)) for n in (6, 7)]
    [0, 7]
    """
    classes: dict[int, list[RunEntry]] = {}
    for run in runs:
        classes.setdefault(run.rows.bit_length() // _CLASS_BITS, []).append(run)
    full = [size for size, some in classes.items() if len(some) > alike * shards + _SPLIT * (_rows(some) // SHARD_ROWS)]
    return tuple(run for size, some in classes.items() for run in some if full and size <= max(full))


def is_light(runs: Iterable[RunEntry]) -> bool:
    """Whether a task that has other work may merge them."""
    return _rows(runs) <= SHARD_ROWS


def shards_for(merges: Iterable[Iterable[RunEntry]], least: int) -> int:
    """Into how many pieces the runs of each trace are merged."""
    return max([least, *(-(-_rows(runs) // SHARD_ROWS) for runs in merges)])


def _rows(runs: Iterable[RunEntry]) -> int:
    return sum(run.rows for run in runs)
