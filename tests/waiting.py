"""Waiting for what another thread or process does: until a condition holds, and not for a number of seconds that was enough once.

`PATIENCE_S` only keeps a test that fails from hanging for ever. No machine that works, however busy, needs as long, so a test that
passes never depends on it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

__all__ = ["PATIENCE_S", "listens", "wait_until"]

PATIENCE_S = 240


def wait_until(condition: Callable[[], object], what: str | Callable[[], str]) -> None:
    """Return when the condition holds; ``what`` says what did not come, if it never does."""
    deadline = time.monotonic() + PATIENCE_S
    pause_s = 0.005
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what if isinstance(what, str) else what()}"
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)


def listens(port: int) -> bool:
    """Whether somebody takes connections to a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    except OSError:
        return False
    return True
