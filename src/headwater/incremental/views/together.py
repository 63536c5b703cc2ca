"""Together: a few writes at once, because waiting for a disk or a bucket is most of what a small refresh does.

A file system's journal takes many files in one turn if they are flushed at the same time, and a bucket answers many requests at once. The
writes of a step do not depend on each other; the next step begins when all are done.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

__all__ = ["together"]

_THREADS = 8


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """What each job gives; if one fails its error is raised, after all have ended.

    >>> together(lambda: 1, lambda: 2)
    [1, 2]
    """
    if len(jobs) < 2:
        return [job() for job in jobs]
    pool = _pool(os.getpid())
    others = [pool.submit(contextvars.copy_context().run, job) for job in jobs[1:]]
    try:
        first = jobs[0]()
    finally:
        wait(others)
    return [first, *(o.result() for o in others)]


@cache
def _pool(_pid: int) -> ThreadPoolExecutor:
    """The threads of this process; a process that was forked has its own. Jobs wait for nobody, so there may be more of them."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="headwater-publish")
