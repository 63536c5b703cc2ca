"""Retries: when a request that failed is sent again, and after how long.

The problem: a retry helps when one request had bad luck, and makes things worse when a server is overloaded. The idea:
besides a limit per request there is a budget for the whole client: each answer earns a tenth of a retry, each retry
costs one, so at most about a tenth of the load can be retries once the initial ones are spent.

Only what may be sent twice is: requests that change nothing. A request that never left (no connection was made) may be
sent again whatever it is. A server that says when to come back is taken at its word, as long as that is within the time
that is left.
"""

from __future__ import annotations

import random

from headwater.base.errors import HeadwaterError, ServerError

__all__ = ["Retries"]

_EARNED, _MOST, _INITIAL = 0.1, 100.0, 10.0
_FIRST_S, _LONGEST_S = 0.01, 1.0


class Retries:
    """The budget of one client.

    >>> retries = Retries(2)
    >>> lost = ServerError.lost("http://127.0.0.1:8080", "reset")
    >>> retries.pause_s(lost, None, attempt=0, repeatable=True, left_s=1.0) is not None
    True
    >>> retries.pause_s(lost, None, attempt=2, repeatable=True, left_s=1.0) is None
    True
    """

    __slots__ = ("_budget", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._budget = _INITIAL

    def earn(self) -> None:
        """An answer came."""
        if self._budget < _MOST:
            self._budget += _EARNED

    def pause_s(
        self, error: HeadwaterError, retry_after_s: float | None, *, attempt: int, repeatable: bool, left_s: float
    ) -> float | None:
        """How long to wait before sending it again; None where it is not to be sent again.

        ``retry_after_s`` is what the server said with its refusal, if that is what failed.
        """
        if attempt >= self.limit or self._budget < 1:
            return None
        if isinstance(error, ServerError) and error.code == "E1764":
            allowed = True
        elif isinstance(error, ServerError) and error.code == "E1765":
            allowed = repeatable
        else:
            allowed = repeatable and retry_after_s is not None
        if not allowed:
            return None
        # Clients that failed together must not come back together.
        pause = min(_LONGEST_S, _FIRST_S * 4.0**attempt) * random.uniform(0.5, 1.5)
        if retry_after_s is not None:
            pause = max(retry_after_s, pause)
        if pause >= left_s:
            return None
        self._budget -= 1
        return pause
