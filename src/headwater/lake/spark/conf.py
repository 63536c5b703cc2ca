"""Session settings for the length of one call, put back as they were.

Some of Spark's switches exist only as settings of the session. Several threads may be inside at once: the first one in
sets a value, the last one out puts the old one back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["conf"]

_held: WeakKeyDictionary[SparkSession, dict[str, tuple[int, str | None]]] = WeakKeyDictionary()
_lock = threading.Lock()


@contextmanager
def conf(session: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Set ``wanted`` for the block."""
    with _lock:
        held = _held.setdefault(session, {})
        for name, value in wanted.items():
            users, before = held.get(name, (0, None))
            if not users:
                before = session.conf.get(name, None)
                session.conf.set(name, value)
            held[name] = (users + 1, before)
    try:
        yield
    finally:
        with _lock:
            for name in wanted:
                users, before = held[name]
                if users > 1:
                    held[name] = (users - 1, before)
                    continue
                del held[name]
                if before is None:
                    session.conf.unset(name)
                else:
                    session.conf.set(name, before)
