"""The follower: the one process of a server that publishes new versions of its tables.

What has to be done for a table is a `Publisher`: something that brings it forward when it is called, and says when it
wants to be called again. Date folders, online tables of lakes and the upkeep of pushed tables each have one. One that
fails does not hold up the others; what it failed by is noted where every worker sees it, for readiness and metrics.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from headwater.base.errors import HeadwaterError
from headwater.serving.server.metrics import ServerMetrics

if TYPE_CHECKING:
    from headwater.derived.environment import Environment
    from headwater.serving.server.shared_counters import SharedCounters

__all__ = ["LakePublisher", "Publisher", "follow", "run_follower"]

_log = logging.getLogger("headwater.serve")
_LONGEST_S = 3600.0
_AFTER_FAILURE_S = 5.0


class Publisher(Protocol):
    """Something that brings one table forward from time to time."""

    @property
    def name(self) -> str:
        """The table."""

    @property
    def error(self) -> HeadwaterError | None:
        """Why the newest rows are not served; None if they are."""

    def tick(self) -> float:
        """Do what is due, and give the seconds until there is something to do again."""


class LakePublisher:
    """Keeps online tables of a lake up to date with their sources, and refreshes the views that they read.

    Parameters
    ----------
    name : str
        what it is called in messages
    open_lake : callable
        gives the lake; called at first use, which is after the fork
    tables : mapping of str to str, optional
        names in the lake, each with the name by which it is served; all online tables that there are, without
    every_s : float
        how often to look at the sources
    """

    def __init__(
        self,
        name: str,
        open_lake: Callable[[], Environment],
        tables: Mapping[str, str] | None = None,
        *,
        every_s: float,
    ) -> None:
        self.name = name
        self.error: HeadwaterError | None = None
        self.errors: dict[str, HeadwaterError | None] = {}
        """Why tables could not be refreshed; None for those that could."""
        self._open, self._tables, self._every_s = open_lake, tables, every_s
        self._environment: Environment | None = None

    def tick(self) -> float:
        from headwater.derived.refreshes import refresh_several
        from headwater.serving.store import KIND_NAME

        if self._environment is None:
            self._environment = self._open()
        tables = self._tables
        if tables is None:
            tables = {name: name for name in self._environment.names(KIND_NAME)}
        self.errors = {}
        if not tables:
            return self._every_s
        found = refresh_several(list(tables), self._environment, full=False, cascade=True)
        for name, served in tables.items():
            because = [found.failed[one] for one in found.skipped.get(name, (name,)) if one in found.failed]
            self.errors[served] = _without_frames(because[0]) if because else None
        failed = [error for error in self.errors.values() if error is not None]
        self.error = failed[0] if failed else None
        return max(_AFTER_FAILURE_S, self._every_s) if failed else self._every_s


def _without_frames(error: HeadwaterError) -> HeadwaterError:
    """An error to keep: the frames that it went through would keep the rows alive that they hold."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def follow(
    publishers: Sequence[Publisher],
    metrics: ServerMetrics,
    wait: Callable[[float], bool],
    *,
    started: Callable[[], None],
) -> None:
    """Call each publisher whenever it is due, until ``wait``, which sleeps, says that it is time to end."""
    due = dict.fromkeys(range(len(publishers)), 0.0)
    started()
    while True:
        now = time.monotonic()
        for number, publisher in enumerate(publishers):
            if due[number] > now:
                continue
            due[number] = time.monotonic() + _ticked(publisher, metrics)
            if wait(0.0):
                return
        if wait(max(0.0, min(due.values(), default=_LONGEST_S + now) - time.monotonic())):
            return


def _ticked(publisher: Publisher, metrics: ServerMetrics) -> float:
    """Let a publisher do what is due, and note how it went; gives the seconds until the next time."""
    try:
        pause = publisher.tick()
        errors: Mapping[str, HeadwaterError | None] = getattr(publisher, "errors", {publisher.name: publisher.error})
    except HeadwaterError as failure:
        pause, errors = _AFTER_FAILURE_S, {publisher.name: failure}
    except Exception:  # noqa: BLE001 (one table does not hold up the others)
        _log.exception("publishing %s failed", publisher.name)
        metrics.table(publisher.name).failed("[E9001] publishing failed; the log says more")
        return _AFTER_FAILURE_S
    for name, error in errors.items():
        table = metrics.table(name)
        why = "" if error is None else f"[{error.code}] {error.message}"
        if not why:
            table.recovered()
        elif table.slot.note != why:
            _log.warning("%s: %s", name, why)
            table.failed(why)
    return min(max(pause, 0.001), _LONGEST_S)


def run_follower(
    make_publishers: Callable[[], list[Publisher]],
    counters: SharedCounters,
    region: int,
    *,
    parent: int = -1,
    ready: int = -1,
) -> None:
    """Publish until told to stop, or until the supervisor is gone: the pipe ``parent`` is then at its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    ends = [reads, *([parent] if parent >= 0 else [])]

    def wait(seconds: float) -> bool:
        readable, _, _ = select.select(ends, [], [], seconds)
        return bool(readable)

    def started() -> None:
        if ready >= 0:
            os.write(ready, b"")
            os.close(ready)

    follow(make_publishers(), ServerMetrics(counters, region), wait, started=started)
