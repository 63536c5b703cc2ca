"""Flushing: several files and folders brought to the disk in one turn.

A file system's journal takes what waits for it together: four files that are flushed at the same time take about as
long as one, and one after the other four times that. So whoever writes several files that one other file will name
writes them without flushing, and flushes all of them at once before that name is given (`Storage.put_if_absent` with
``after``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import wait

from headwater.base.pools import pool

__all__ = ["flush_together"]

_THREADS = 8


def flush_together(paths: Iterable[str], *, meanwhile: Callable[[], object] | None = None) -> None:
    """Return when every file and folder is on the disk, and ``meanwhile`` has returned; raises the first error,
    after all have ended.
    """
    first, *others = dict.fromkeys(paths)
    threads = pool("flush", _THREADS)
    waiting = [threads.submit(_flush, path) for path in others]
    try:
        if meanwhile is None:
            _flush(first)
        else:
            waiting.append(threads.submit(_flush, first))
            meanwhile()
    finally:
        wait(waiting)
    for done in waiting:
        done.result()


def _flush(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
