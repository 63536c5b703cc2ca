"""Sorting beside a step: a large change that nobody asks for in the step that brings it is made a run on another
thread.

A join looks its changed rows up in the other side's trace, and needs no order for that; their own trace needs it by the
end of the step. An aggregate adds up sums while the values that extremes are found among are sorted. Kernels do not
hold the GIL, so the one goes on while the other does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headwater.base.pools import pool
from headwater.incremental.run import Run

if TYPE_CHECKING:
    from concurrent.futures import Future

    from headwater.incremental.zset import ZSet

__all__ = ["WORTH_A_THREAD", "run_of"]

WORTH_A_THREAD = 8_192
"""From how many rows on handing them over is worth it."""


def run_of(delta: ZSet) -> Future[Run]:
    """The run of a change, to be waited for."""
    delta.hashes  # noqa: B018  who reads the change meanwhile wants them too
    return pool("sort", max(1, (os.cpu_count() or 2) - 1)).submit(Run.of, delta)
