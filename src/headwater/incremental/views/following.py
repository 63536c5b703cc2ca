"""Following: refreshes one after the other, as changes come.

A refresh takes everything that has come since the last one, so batches grow with the load by themselves. Where
nothing has come, looking is a few requests to the log; it is done again after a pause that doubles, up to a limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from headwater.base.errors import InputError
from headwater.derived.reports import Refresh

__all__ = ["follow"]

_FIRST_SECONDS = 0.01


def follow(refresh: Callable[[], Refresh], every_seconds: float, *, available_now: bool) -> Iterator[Refresh]:
    """The reports of refreshes that had something to do; without end, unless what is ``available_now`` is enough."""
    if isinstance(every_seconds, bool) or not isinstance(every_seconds, int | float) or every_seconds <= 0:
        raise InputError.bad_argument("every_seconds", every_seconds, "a number of seconds above zero")
    return _reports(refresh, float(every_seconds), available_now=available_now)


def _reports(refresh: Callable[[], Refresh], most: float, *, available_now: bool) -> Iterator[Refresh]:
    pause = min(_FIRST_SECONDS, most)
    while True:
        done = refresh()
        if done.mode != "noop":
            pause = min(_FIRST_SECONDS, most)
            yield done
            continue
        if available_now:
            return
        time.sleep(pause)
        pause = min(2 * pause, most)
