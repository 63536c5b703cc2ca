"""Watching: a project that is refreshed whenever one of its tables changes.

The logs of the tables are looked at a few times a second, which is one look for a file each where the lake is local.
When one has grown, the nodes that read it are refreshed, directly or through others, and only these. A refresh pins its
tables anew, so what is committed while it runs is for the next one. Nodes that failed are tried again when a table that
they read changes, and now and then without that, each time after a longer while.

A stop is graceful: nodes at work are finished and recorded, and no further one is begun.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headwater.base.errors import HeadwaterError
from headwater.lake import snapshot
from headwater.pipeline.run import Run
from headwater.pipeline.selection import selected

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lakehouse import Lake
    from headwater.pipeline.graph import Graph

__all__ = ["watch"]

_FIRST_RETRY_SECONDS = 5.0
_LONGEST_RETRY_SECONDS = 300.0
_log = logging.getLogger("headwater.pipeline")


class Watched(Protocol):
    """A project, as a watch sees it."""

    @property
    def graph(self) -> Graph:
        """Its nodes."""

    @property
    def lake(self) -> Lake:
        """Its lake."""

    @property
    def root(self) -> Path:
        """Its folder."""

    @property
    def refresh(self) -> Callable[..., Run]:
        """Refreshes some of it."""


def watch(
    project: Watched,
    selectors: Sequence[str] = (),
    *,
    stopped: threading.Event,
    interval_seconds: float = 0.2,
    **options: Any,
) -> Iterator[Run]:
    """Refresh a project now, and then whenever one of its tables changes, until ``stopped``; gives each refresh."""
    watching = _Watching(project, selectors, interval_seconds)
    first = True
    while not stopped.is_set():
        names = list(watching.wanted()) if first else watching.due()
        if names:
            run = watching.refresh(names, stopped, options)
            if run is not None:
                yield run
        first = False
        stopped.wait(interval_seconds)


class _Watching:
    def __init__(self, project: Watched, selectors: Sequence[str], interval_seconds: float) -> None:
        self.project = project
        self.selectors = selectors
        self.seen: dict[str, tuple[str, int]] = {}
        self.failed: dict[str, float] = {}
        """Nodes that failed or were left out, each with the time after which they are tried again."""
        self.pause_seconds = _FIRST_RETRY_SECONDS

    def wanted(self) -> list[str]:
        """The nodes that are watched."""
        names = selected(self.project.graph, self.selectors, str(self.project.root))
        self._changed(names)
        return names

    def due(self) -> list[str]:
        """The watched nodes that read what has changed, and those whose time to be tried again has come."""
        graph = self.project.graph
        names = selected(graph, self.selectors, str(self.project.root))
        touched = graph.downstream(self._changed(names))
        tested = {one.check.node for one in graph.checks.values() if touched & set(one.reads)}
        touched |= graph.downstream(tested)  # a test that heals lets its readers go on
        now = time.monotonic()
        again = {name for name, at in self.failed.items() if at <= now}
        return [name for name in names if name in touched or name in again]

    def _changed(self, names: Sequence[str]) -> list[str]:
        """The tables below some nodes that are not what they were; those that cannot be looked at are as they were."""
        graph, found = self.project.graph, []
        kept = set(names)
        read = {read for name in names for read in graph.reads(name)}
        read |= {table for one in graph.checks_of(kept | read).values() for table in one.reads}
        tables = sorted(read - kept)
        for name in tables:
            try:
                base = snapshot.latest(self.project.lake.table(name).storage)
            except HeadwaterError as error:
                _log.warning("a table cannot be looked at", extra={"node": name, "error": error.message})
                continue
            now = (base.table_id, base.version)
            if self.seen.get(name) != now:
                self.seen[name] = now
                found.append(name)
        return found

    def refresh(self, names: Sequence[str], stopped: threading.Event, options: dict[str, Any]) -> Run | None:
        """Refresh some nodes; None where the project itself could not be read."""
        try:
            run = self.project.refresh(*names, stopped=stopped, **options)
        except HeadwaterError as error:
            _log.error("the project cannot be refreshed", extra={"error": f"[{error.code}] {error.message}"})
            self._later(names)
            return None
        bad = run.of_state("failed", "blocked")
        for name in run:
            self.failed.pop(name, None)
        if bad:
            self._later(bad)
        else:
            self.pause_seconds = _FIRST_RETRY_SECONDS
        return run

    def _later(self, names: Sequence[str]) -> None:
        at = time.monotonic() + self.pause_seconds
        self.failed.update(dict.fromkeys(names, at))
        self.pause_seconds = min(2 * self.pause_seconds, _LONGEST_RETRY_SECONDS)
