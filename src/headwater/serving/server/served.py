"""The tables of one process: which there are, which version of each is served, and whether they are well.

A thread looks for newer versions: on local disks every few milliseconds, which costs a stat for each table, and on
object storage about once a second. A version that is found is opened by that thread and then swapped in by one
assignment, so a request never waits for it. Requests read `ServedTables.by_name`, which is replaced and never changed.

Whoever waits for a frontier is woken after each swap (`changed`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headwater.base.errors import HeadwaterError, RequestError
from headwater.base.frontier import Frontier

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.serving.server.metrics import ServerMetrics, TableMetrics
    from headwater.serving.server.options import ServerOptions
    from headwater.serving.store import Following
    from headwater.serving.version import TableVersion

__all__ = ["Backing", "NewTable", "Served", "ServedTables", "TableFacts", "TableWrite", "check_reachable", "reached"]

_log = logging.getLogger("headwater.serve")
_FIRST_ROUND_S = 0.8
_REST = 20
"""Looking for newer versions of many tables may take a share of 1 in so many of a core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What a server is told of a table beside its rows.

    Parameters
    ----------
    required : bool
        the server is not ready without it
    freshness_s : float, optional
        the server is not ready while its version is older
    remote : bool
        it lies on object storage, where looking for newer versions costs a request
    writable : bool
        the API may write and delete rows of it, and drop it
    """

    required: bool = True
    freshness_s: float | None = None
    remote: bool = False
    writable: bool = False


class Backing(Protocol):
    """Where the tables of a server are. One is made in each process, after the fork."""

    @property
    def is_remote(self) -> bool:
        """Whether asking which tables there are costs a request to object storage."""

    def tables(self) -> Mapping[str, TableFacts]:
        """The tables that there are now."""

    def follow(self, name: str) -> Following:
        """Follow the versions of one of them."""

    def definition(self, name: str) -> NewTable:
        """What a table was made by, if its rows come by the API."""

    def create(self, name: str, definition: NewTable) -> None:
        """Make a table whose rows come by the API."""

    def drop(self, name: str) -> None:
        """Delete a table that was made so."""

    def write(self, name: str, rows: pa.Table) -> TableWrite:
        """Insert or replace rows by their keys; they are served when this returns, or a moment later."""

    def delete(self, name: str, keys: pa.Table) -> TableWrite:
        """Delete rows by their keys."""

    def compact(self, name: str) -> None:
        """Let the base of a table take in its overlays now, where its rows come by the API."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True)
class NewTable:
    """What a table is to be like whose rows come by the API: its columns have those of the key first."""

    key: tuple[str, ...]
    schema: pa.Schema
    ttl_ms: int | None = None
    event_time: str | None = None


@dataclass(frozen=True, slots=True)
class TableWrite:
    """What became of a write: how many rows it was about, and the version that has them."""

    rows: int
    version: int
    frontier: str


class Served:
    """One table in one process."""

    __slots__ = ("facts", "following", "metrics", "name", "noted", "prepared")

    def __init__(self, name: str, facts: TableFacts, following: Following, metrics: TableMetrics) -> None:
        self.name, self.facts, self.following, self.metrics = name, facts, following, metrics
        self.noted: str | None = None
        """Why the newest version could not be opened, as it was counted last."""
        self.prepared: Any = None
        """What whoever answers has prepared for answers of one version."""

    @property
    def problem(self) -> str | None:
        """Why the table is not well; None if it is."""
        version, error = self.following.current, self.following.error
        if error is not None:
            return f"the newest version cannot be opened: [{error.code}] {error.message}"
        if version is None:
            return "it is not loaded"
        limit = self.facts.freshness_s
        age_s = time.time() - version.committed_ms / 1000
        if limit is not None and age_s > limit:
            return f"it is {age_s:.0f} s old, and may be {limit:g} s"
        return None

    def advance(self) -> bool:
        """Look for a newer version, and count what comes of it; gives whether there is one."""
        began = time.perf_counter_ns()
        try:
            moved = self.following.advance()
        except HeadwaterError as failure:
            self._note(f"[{failure.code}] {failure.message}")
            return False
        version, error = self.following.current, self.following.error
        if moved and version is not None:
            self.metrics.swapped(version, time.perf_counter_ns() - began)
        self._note(None if error is None else f"[{error.code}] {error.message}")
        return moved

    def _note(self, why: str | None) -> None:
        if why != self.noted:
            self.noted = why
            if why is None:
                self.metrics.recovered()
            else:
                _log.warning("%s: %s", self.name, why)
                self.metrics.failed(why)


class ServedTables:
    """All tables of one process, followed by a thread.

    Parameters
    ----------
    backing : Backing
    metrics : ServerMetrics
    options : ServerOptions
    """

    def __init__(self, backing: Backing, metrics: ServerMetrics, options: ServerOptions) -> None:
        self.backing, self.metrics, self._options = backing, metrics, options
        self.by_name: dict[str, Served] = {}
        self._lock = threading.Lock()  # of `by_name` being replaced
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Event] = set()
        self._remote_due: dict[str, float] = {}
        self._facts: Mapping[str, TableFacts] = {}
        self._list_due = 0.0

    async def start(self) -> None:
        """Begin to follow; gives back when all tables are open, or after a moment if that takes long."""
        self._loop = asyncio.get_running_loop()
        first = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(first,), name="follow", daemon=True)
        self._thread.start()
        try:
            await asyncio.wait_for(first.wait(), _FIRST_ROUND_S)
        except TimeoutError:
            _log.info("tables are still being loaded")

    def close(self) -> None:
        """Stop following, and let go of the tables."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.backing.close()

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self, first: asyncio.Event) -> None:
        local_s = self._options.poll_local_s
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.advance()
            except Exception:  # noqa: BLE001 (the thread goes on whatever happens)
                _log.exception("looking for newer versions failed")
                self._stop.wait(1.0)
            if not first.is_set():
                self._wake(first.set)
            self._stop.wait(max(local_s, _REST * (time.monotonic() - began)))

    def advance(self) -> bool:
        """Look for tables and versions that are new; gives whether there were any."""
        now = time.monotonic()
        changed = self._list(now)
        for served in list(self.by_name.values()):
            if served.facts.remote:
                if now < self._remote_due.get(served.name, 0.0):
                    continue
                self._remote_due[served.name] = now + self._options.poll_remote_s
            changed |= served.advance()
        if changed:
            self._wake(self._notify)
        return changed

    def _list(self, now: float) -> bool:
        """Take in tables that were made, and let go of those that were dropped."""
        if now < self._list_due:
            return False
        pause_s = self._options.poll_remote_s if self.backing.is_remote else 5 * self._options.poll_local_s
        self._list_due = now + pause_s
        try:
            names = self._facts = self.backing.tables()
        except HeadwaterError as error:
            _log.warning("the tables cannot be listed: %s", error)
            return False
        have = self.by_name
        if names.keys() == have.keys():
            return False
        for name in names.keys() - have.keys():
            self._open(name, names[name])
        with self._lock:
            gone = [served for name, served in self.by_name.items() if name not in names]
            self.by_name = {name: served for name, served in self.by_name.items() if name in names}
        for served in gone:
            served.metrics.dropped()
        return True

    def _open(self, name: str, facts: TableFacts) -> Served | None:
        try:
            served = Served(name, facts, self.backing.follow(name), self.metrics.table(name))
        except HeadwaterError as error:
            _log.warning("%s: %s", name, error)
            self.metrics.table(name).failed(f"[{error.code}] {error.message}")
            return None
        served.advance()
        with self._lock:
            self.by_name = {**self.by_name, name: served}
        return served

    def _wake(self, call: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(call)
            except RuntimeError:  # it was closed in between
                return

    def _notify(self) -> None:
        for event in self._waiting:
            event.set()

    # -- for requests ----------------------------------------------------------------------------------------------

    def look_for(self, name: str) -> Served | None:
        """A table that this process has not seen yet, since another one has just made it."""
        found = self.by_name.get(name)
        if found is not None:
            return found
        facts = self.backing.tables().get(name)
        return None if facts is None else self._open(name, facts)

    def forget(self, name: str) -> None:
        """Let go of a table that was dropped."""
        with self._lock:
            gone = self.by_name.get(name)
            self.by_name = {one: served for one, served in self.by_name.items() if one != name}
        if gone is not None:
            gone.metrics.dropped()

    async def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds that can become true by a newer version; gives whether it does."""
        if condition():
            return True
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return condition()
        finally:
            self._waiting.discard(event)
        return True

    def problems(self, refused: Mapping[str, str]) -> dict[str, str]:
        """Why the server is not ready, by table; ``refused`` are notes of whoever publishes versions."""
        found: dict[str, str] = {}
        for name, facts in self._facts.items():
            if not facts.required:
                continue
            served = self.by_name.get(name)
            why = "it is not loaded" if served is None else served.problem or refused.get(name)
            if why is not None:
                found[name] = why
        return found


def reached(version: TableVersion, wanted: Frontier) -> bool:
    """Whether a version reflects a frontier; an entry of the table's own name is about its own versions."""
    reach = version.reach
    for table, number in wanted.items():
        have = reach.get(table)
        if have is None and table == version.name:
            have = version.number
        if have is None or have < number:
            return False
    return True


def check_reachable(version: TableVersion, wanted: Frontier) -> None:
    """Raise for a frontier of tables that the version does not follow: it would never be reached."""
    known: Iterable[str] = {*version.reach, version.name}
    if not set(wanted) <= set(known):
        raise RequestError.unrelated_frontier(str(wanted), version.name, sorted(version.reach))
