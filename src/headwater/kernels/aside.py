"""Kernels that nobody waits for.

Where there is another way to an answer, a kernel that takes a minute to compile must not hold up the step that first
asks for it. So it is compiled in another process (`compiler`), and until it is there the other way is taken.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from headwater.base import events
from headwater.kernels.compiler import compilers
from headwater.kernels.signature import signature

__all__ = ["is_loaded", "is_ready"]


def is_loaded(kernel: Any) -> bool:
    """Is there machine code for a kernel in this process? Loads it, if it is kept.

    >>> import numpy as np
    >>> from headwater.kernels.hash import hash_rows
    >>> len(hash_rows(np.zeros((1, 2), np.int64), np.zeros((0, 3), np.int64))), is_loaded(hash_rows)
    (1, True)
    """
    types = signature(kernel.py_func)
    if types in kernel.overloads:
        return True
    if not kernel._cache.has_code(types, kernel.targetctx):
        return False
    kernel.compile(types)  # which loads it
    return True


def is_ready(kernel: Any) -> bool:
    """The same; and where there is none, have it compiled, so that it is ready at some later time.

    If it cannot be compiled, it never is.
    """
    if is_loaded(kernel):
        return True
    for future in compilers().compile_later([kernel.name]):
        future.add_done_callback(lambda done: _report(kernel.name, done))
    return False


def _report(name: str, done: Future[str | None]) -> None:
    if (problem := done.result()) is not None:
        events.notice(f"kernel {name} could not be compiled ({problem}); what it does is done without it")
