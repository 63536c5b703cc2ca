"""Threads of a process, by what they are for; a process that was forked has its own."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

__all__ = ["pool"]


def pool(name: str, threads: int = 1) -> ThreadPoolExecutor:
    """The threads of this process that are named so.

    >>> pool("example") is pool("example")
    True
    """
    return _pool(os.getpid(), name, threads)


@cache
def _pool(_pid: int, name: str, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=f"headwater-{name}")
