"""Together: a few writes at once, because waiting for a disk or a bucket is most of what a small refresh does.

A file system's journal takes many files in one turn if they are flushed at the same time, and a bucket answers many
requests at once. The writes of a step do not depend on each other; the next step begins when all are done.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, Self

__all__ = ["Begun", "begin", "together"]

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


class Begun:
    """A job that goes on beside what follows; a ``with`` block ends after it,
    and raises its error unless it has one of its own.
    """

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def end(self) -> None:
        """Wait for it; raises its error."""
        self._future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        wait([self._future])
        if error is None:
            self._future.result()


def begin(job: Callable[[], object]) -> Begun:
    """Begin a job.

    >>> done = []
    >>> with begin(lambda: done.append(1)):
    ...     pass
    >>> done
    [1]
    """
    return Begun(_pool(os.getpid()).submit(contextvars.copy_context().run, job))


@cache
def _pool(_pid: int) -> ThreadPoolExecutor:
    """The threads of this process; a process that was forked has its own. Jobs wait for nobody,
    so there may be more of them.
    """
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="headwater-publish")
