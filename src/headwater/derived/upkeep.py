"""Upkeep: work that can wait, done by one thread beside the process's own.

A refresh leaves things behind that nobody waits for: small files to be put together, old state to be deleted, a
checkpoint of the log. Each artefact has one place in the queue, however often it asks. The thread ends when there is
nothing to do, and the end of the process waits for that: a process that does one refresh and ends leaves things tidy,
too.

What a job does has to be right whenever it is cut short, and whatever refreshes do meanwhile; an error in it is told as
a notice.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable

from headwater.base import events

__all__ = ["cancel", "finish", "later", "wait"]

_guard = threading.Condition()
_waiting: dict[str, Callable[[], None]] = {}
_thread: threading.Thread | None = None
_running: str | None = None
_owner = os.getpid()


def later(key: str, job: Callable[[], None], *, what: str) -> None:
    """Do ``job`` soon, unless one of this key is waiting already; ``what`` names it in notices."""
    global _thread, _running, _owner, _guard
    if _owner != os.getpid():  # a process that was forked has no such thread, and jobs of its own
        _owner, _thread, _running, _guard = os.getpid(), None, None, threading.Condition()
        _waiting.clear()
    context = contextvars.copy_context()
    with _guard:
        if _thread is None and not threading.main_thread().is_alive():
            return  # no thread can be started any more; the next refresh asks again
        _waiting.setdefault(key, lambda: context.run(_careful, job, what))
        if _thread is None:
            started = threading.Thread(target=_work, name="headwater-upkeep")
            try:
                started.start()
            except RuntimeError as e:  # as many threads as the machine allows
                _waiting.clear()
                events.notice(f"{what}: {e}")
                return
            _thread = started


def wait(timeout: float | None = None) -> bool:
    """Wait until there is nothing to do; whether that was so in time."""
    if _owner != os.getpid():
        return True
    with _guard:
        return _guard.wait_for(lambda: _thread is None, timeout)


def finish(prefix: str) -> None:
    """Wait until no job is waiting or running whose key begins so."""
    if _owner != os.getpid():
        return
    with _guard:
        _guard.wait_for(lambda: not any(key.startswith(prefix) for key in (*_waiting, _running or "")))


def cancel(key: str) -> None:
    """Forget the job of this key, or wait for its end if it is running."""
    if _owner != os.getpid():
        return
    with _guard:
        _waiting.pop(key, None)
        _guard.wait_for(lambda: _running != key)


def _work() -> None:
    global _thread, _running
    while True:
        with _guard:
            _running = None
            _guard.notify_all()
            if not _waiting:
                _thread = None
                return
            _running = next(iter(_waiting))
            job = _waiting.pop(_running)
        job()


def _careful(job: Callable[[], None], what: str) -> None:
    try:
        job()
    except BaseException as e:  # noqa: BLE001  nobody is there to catch it, and a panic of an engine is no Exception
        events.notice(f"{what}: {getattr(e, 'message', None) or e}")
