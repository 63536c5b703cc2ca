"""Retries: which failures may pass by themselves, and how long to wait before trying again.

A lost race, a storage that does not answer and a server that is away may be over in a moment. A query that fails, a
column that is gone or a permission that is missing will fail again. The wait doubles with each try, with some jitter so
that many who failed together do not come back together.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from headwater.base.errors import ConflictError, HeadwaterError, ServerError, StorageError, UpstreamError

__all__ = ["may_pass", "retried"]

T = TypeVar("T")
_PASSING = frozenset({"E6003", "E6005"})
"""Of errors of storage: it failed, or it is not known what came of it."""
_LONGEST_WAIT_SECONDS = 60.0


def may_pass(error: BaseException) -> bool:
    """Whether trying again may help.

    >>> from headwater.base.errors import NotFoundError
    >>> may_pass(ConflictError.lost("another", 3, "WRITE", "t")), may_pass(NotFoundError.table("t", [], "lake"))
    (True, False)
    """
    if isinstance(error, UpstreamError):
        return error.__cause__ is not None and may_pass(error.__cause__)
    if isinstance(error, StorageError):
        return error.code in _PASSING
    if isinstance(error, HeadwaterError):
        return isinstance(error, ConflictError | ServerError)
    return isinstance(error, OSError)


def retried(
    step: Callable[[], T],
    *,
    retries: int,
    wait_seconds: float,
    stopped: threading.Event,
    on_retry: Callable[[HeadwaterError | OSError, int, float], None],
) -> T:
    """What a step gives; a failure that may pass is tried again, as long as nothing is stopped."""
    for number in range(1, retries + 2):
        try:
            return step()
        except (HeadwaterError, OSError) as error:
            if number > retries or not may_pass(error):
                raise
            wait = min(wait_seconds * 2 ** (number - 1), _LONGEST_WAIT_SECONDS) * random.uniform(0.75, 1.25)
            on_retry(error, number, wait)
            if stopped.wait(wait):
                raise
    raise AssertionError("the last try raises")
