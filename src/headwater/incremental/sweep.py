"""Sweeping: letting rows go by a rule that looks at a whole key, where a bound of each row's own does not do.

The newest row of a key has to stay however old it is, and so have all rows of a session that goes on. So a rule is
asked about whole keys, with weights that are summed: what is merged here is everything that a trace holds, and a row
that another run takes back stands for nothing. That costs the state, so it is done in the background, and not before
about as much has come as was there (`headwater.incremental.trace`): each row that comes pays for a few that are looked
at.

Invariants: a rule is given rows sorted by (hash, key, order, rest), each once, and all rows of a key at once. Where
memory is short, the rows are cut by their hashes into pieces that become runs of their own. If little would go, the
runs stay what they are, with the files they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.incremental.run import Run, verify
from headwater.incremental.zset import Positions, ZSet, concatenate
from headwater.kernels.keys import distinct_keys

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout

__all__ = ["Gone", "Mask", "swept", "swept_pieces"]

Mask = npt.NDArray[np.bool_]
Gone = Callable[[ZSet, Positions], Mask]
"""Given rows of whole keys and where the keys begin among them: which rows may go."""

_LITTLE = 8
_PIECE_ROWS = 1 << 18


def swept(runs: Sequence[Run], gone: Gone) -> list[Run]:
    """The sum of some runs without what may go, or the runs themselves if that is little."""
    verify(runs)
    whole = _summed(runs, [slice(None)] * len(runs))
    going = _going(whole, gone)
    if np.count_nonzero(going) * _LITTLE < len(going):
        return list(runs)
    stay = np.flatnonzero(~going)
    return [Run.of(whole.filtered(stay))] if len(stay) else []


def swept_pieces(runs: Sequence[Run], gone: Gone, *, rows: int = _PIECE_ROWS) -> Iterator[Run]:
    """The same as runs of about so many rows, one after the other."""
    verify(runs)
    pieces = max(1, sum(map(len, runs)) // rows)
    cuts = np.array([(i << 64) // pieces for i in range(1, pieces)], dtype=np.uint64)
    edges = [[0, *np.searchsorted(run.hashes, cuts).tolist(), len(run)] for run in runs]
    for i in range(pieces):
        whole = _summed(runs, [slice(e[i], e[i + 1]) for e in edges])
        stay = np.flatnonzero(~_going(whole, gone))
        if len(stay):
            yield Run.of(whole.filtered(stay))


def _summed(runs: Sequence[Run], parts: Sequence[slice]) -> ZSet:
    some = [run.zset(part) for run, part in zip(runs, parts, strict=True)]
    layout: Layout = runs[0].layout
    whole = concatenate(some, layout)
    if len(some) == 1 or whole.consolidated:
        # What is mapped cannot be written to, and kernels would be compiled again for it.
        return ZSet(layout, np.array(whole.rows), whole.owners, hashes=np.array(whole.hashes), consolidated=True)
    hashes = np.concatenate([z.hashes for z in some])
    return ZSet(layout, whole.rows, whole.owners, hashes=hashes).consolidate()


def _going(whole: ZSet, gone: Gone) -> Mask:
    if not len(whole):
        return np.zeros(0, dtype=np.bool_)
    begins = np.empty(len(whole), dtype=np.int64)
    keys = distinct_keys(whole.hashes, whole.rows, whole.layout.key_parts, False, begins)
    return gone(whole, begins[:keys])
