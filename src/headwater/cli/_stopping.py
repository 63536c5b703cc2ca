"""Stopping gracefully: a signal sets an event, and whoever works ends what is at hand."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stop_signals"]


@contextmanager
def stop_signals(stopped: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM end the work after the work at hand, and a second one end it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}

    def stop(number: int, _frame: object) -> None:
        if stopped.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
