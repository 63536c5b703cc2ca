"""The n-th row of some variables in whole matches, from the first on or from the last back."""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Positions
from headwater.kernels.compiled import kernel

__all__ = ["nth_labels"]


@kernel
def nth_labels(
    labels: Positions,
    offsets: Positions,
    chosen: Flags,
    matches: Positions,
    first: bool,
    skipped: int,
    out: Positions,
) -> None:
    """For each of the matches the label of the row that is meant; -1 where there is none.

    A label is the number of a variable, doubled, plus a mark; ``chosen`` says which variables count.
    """
    for i in range(matches.size):
        begin, end = offsets[matches[i]], offsets[matches[i] + 1]
        left = skipped
        found = np.int64(-1)
        for k in range(end - begin):
            at = begin + k if first else end - 1 - k
            if chosen[labels[at] >> 1]:
                if left == 0:
                    found = np.int64(at)
                    break
                left -= 1
        out[i] = found
