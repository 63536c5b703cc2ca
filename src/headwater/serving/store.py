"""The store of one online table: its commits, its files, and how readers follow them.

The log of records (`headwater.derived.record_log`) says which files are the newest version; one small file, put if
absent, makes it true. Files lie in the table's state folder: on local disks they are mapped where they are, from object
storage they are fetched once per machine, checked, and mapped from there.

Readers look at the log: on a local disk that is one ``stat`` of a folder while nothing is new. A version that cannot be
opened is an error to report, and the one before it serves on, also for a reader that has just begun.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from headwater.base.errors import CorruptionError, HeadwaterError, NotFoundError
from headwater.base.storage import Storage, now_ms
from headwater.derived.record_log import Committed, RecordLog
from headwater.derived.state_folder import StateFolder
from headwater.serving.layers import Layers
from headwater.serving.record import OnlineRecord
from headwater.serving.record_file import RecordFile
from headwater.serving.version import TableVersion, VersionFacts

__all__ = ["KIND_NAME", "Following", "OnlineStore", "common_versions"]

KIND_NAME = "online"
_RECENT = 4
_RECENT_SECONDS = 10.0
_TRIES = 5
_YOUNG_MS = 3_600_000
_YOUNG_NS = 50_000_000
"""A folder that was changed so lately may change again without another time of change."""


class OnlineStore:
    """The commits and files of one online table.

    Parameters
    ----------
    root : Storage
        of the lake, or the data folder of a server
    name : str
        of the table
    """

    def __init__(self, root: Storage, name: str) -> None:
        self.root, self.name = root, name
        self.log = RecordLog(root, KIND_NAME, name)
        self.folder = StateFolder(root, f"_headwater/{KIND_NAME}s/{name}")
        self._open: dict[str, RecordFile] = {}
        """The files of the record that was looked at last: most are those of the next one, too."""

    # -- files -----------------------------------------------------------------------------------------------------

    def new_file(self, number: int, part: int = 0) -> str:
        """The path of a file that belongs to commit ``number``."""
        os.makedirs(self.folder.folder, exist_ok=True)
        return os.path.join(self.folder.folder, f"{number:010d}-{part:04d}-{uuid.uuid4().hex}.records")

    def upload(self, names: Sequence[str]) -> None:
        """Put files where other machines find them, before a commit names them."""
        if self.folder.remote:
            for name in names:
                self.folder.upload(name)

    def delete_files(self, names: Sequence[str]) -> None:
        """Delete files that no commit names any more; whoever has them mapped keeps them."""
        for name in names:
            path = os.path.join(self.folder.folder, name)
            if os.path.exists(path):
                os.unlink(path)
            if self.folder.remote:
                self.root.delete(f"{self.folder.path}/{name}")

    def file_names(self) -> list[str]:
        """The files that are there, named or not."""
        entries = [entry.path.rpartition("/")[2] for entry in self.root.list(f"{self.folder.path}/")]
        if self.folder.remote and os.path.isdir(self.folder.folder):
            entries += os.listdir(self.folder.folder)
        return sorted({name for name in entries if ".records" in name})

    def orphans(self, named: Collection[str]) -> list[str]:
        """Files that no commit names, left by a process that ended.

        On object storage another machine may be about to name a file, so young ones are left alone. Here the lock of
        the folder keeps refreshes apart, and whoever writes without it looks whether its files are still there
        (`have`).
        """
        if not self.folder.remote:
            return [name for name in self.file_names() if name not in named]
        old = now_ms() - _YOUNG_MS
        entries = self.root.list(f"{self.folder.path}/")
        found = ((e.path.rpartition("/")[2], e.modified_ms) for e in entries)
        return [name for name, at in found if ".records" in name and name not in named and at < old]

    def have(self, names: Iterable[str]) -> bool:
        """Whether files are where readers look for them."""
        return all(self.root.exists(f"{self.folder.path}/{name}") for name in names)

    # -- versions --------------------------------------------------------------------------------------------------

    def record(self, committed: Committed) -> OnlineRecord:
        """What a commit says."""
        return OnlineRecord.from_json(committed.record, f"commit {committed.number}", self.log.path)

    def layers(self, record: OnlineRecord) -> Layers:
        """The files of a record, mapped."""
        known = self._open
        found = {name: known.get(name) or self._mapped(name) for name in record.files}
        self._open = found
        return Layers([[found[name] for name in layer.files] for layer in record.layers])

    def _mapped(self, name: str) -> RecordFile:
        path = os.path.join(self.folder.folder, name)
        if not self.folder.remote:
            try:
                return RecordFile(path)
            except FileNotFoundError:
                raise NotFoundError.object(name, self.folder.folder) from None
        fresh = not os.path.exists(path)
        if fresh:
            os.makedirs(self.folder.folder, exist_ok=True)
            self.folder.fetch(name)
        found = RecordFile(path)
        if fresh:
            try:
                found.check()
            except CorruptionError:
                os.unlink(path)
                raise
        return found

    def version(self, committed: Committed) -> TableVersion:
        """The version that a commit names, ready to answer."""
        record = self.record(committed)
        definition: Mapping[str, Any] = committed.definition
        facts = VersionFacts(
            name=self.name,
            number=committed.number,
            frontier=record.frontier,
            reach=record.reach,
            rows=record.rows,
            committed_ms=record.last.at if record.last is not None else 0,
            ttl_ms=definition.get("ttl_ms"),
            event_time=definition.get("event_time"),
        )
        return TableVersion(facts, self.layers(record))

    def newest(self) -> TableVersion | None:
        """The newest version; None while there is none."""
        for left in reversed(range(_TRIES)):
            committed = self.log.newest()
            if committed is None or not self.record(committed).layers:
                return None
            try:
                return self.version(committed)
            except NotFoundError:  # it was superseded while it was being opened
                if not left:
                    raise
        return None

    def follow(self) -> Following:
        """Follow the newest version."""
        return Following(self)

    def __repr__(self) -> str:
        return f"OnlineStore({self.name!r}, {self.root.url!r})"


class Following:
    """The newest version of a table, as far as it was looked for. Any number of threads may use it.

    Attributes
    ----------
    current : TableVersion or None
        one look at it is one version, for a whole request
    recent : tuple of TableVersion
        it and a few before it, newest first
    error : HeadwaterError or None
        why the newest commit could not be opened
    swap_seconds : float
        how long the last version took to open
    """

    def __init__(self, store: OnlineStore) -> None:
        self.store = store
        self.name = store.name
        self.current: TableVersion | None = None
        self.recent: tuple[TableVersion, ...] = ()
        self.error: HeadwaterError | None = None
        self.swap_seconds = 0.0
        self.swaps = 0
        self._replaced: dict[int, float] = {}
        self._seen: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._folder = store.root.local_path(store.log.path)

    @property
    def is_local(self) -> bool:
        """Whether looking for a newer version costs next to nothing."""
        return self._folder is not None

    def advance(self) -> bool:
        """Look for a newer commit; whether there was one."""
        if self._folder is not None and not self._changed(self._folder):
            self._expire()
            return False
        with self._lock:
            return self._advance()

    def _changed(self, folder: str) -> bool:
        try:
            changed = os.stat(folder).st_mtime_ns
        except OSError:
            changed = -1
        if self._seen is not None and self._seen[0] == changed and self._seen[1] - changed > _YOUNG_NS:
            return False
        self._seen = (changed, time.time_ns())
        return True

    def _advance(self) -> bool:
        try:
            numbers = self.store.log.numbers()
            have = self.current.number if self.current is not None else 0
            if not numbers or numbers[-1] == have:
                if not numbers:
                    self.current, self.recent = None, ()
                self._expire()
                return False
            began = time.perf_counter()
            found = self.store.newest()
            self.error = None
            if found is None or (self.current is not None and found.number == self.current.number):
                return False
        except HeadwaterError as error:
            self.error = error
            self._seen = None
            found = self._one_before() if self.current is None else None
            if found is None:
                return False
        if self.current is not None:
            self._replaced[self.current.number] = time.monotonic()
        self.recent = (found, *self.recent)[:_RECENT]
        self.current = found
        self.swap_seconds = time.perf_counter() - began
        self.swaps += 1
        return True

    def _one_before(self) -> TableVersion | None:
        """The newest version that can be opened, for who has none yet; None if there is none."""
        for number in reversed(self.store.log.numbers()[:-1]):
            try:
                committed = self.store.log.read(number)
                if self.store.record(committed).layers:
                    return self.store.version(committed)
            except HeadwaterError:  # its files may be gone
                continue
        return None

    def _expire(self) -> None:
        """Release versions that were replaced some time ago."""
        if len(self.recent) > 1:
            now = time.monotonic()
            kept = [v for v in self.recent[1:] if now - self._replaced.get(v.number, 0.0) < _RECENT_SECONDS]
            if len(kept) + 1 != len(self.recent):
                self.recent = (self.recent[0], *kept)


def common_versions(tables: Sequence[Following]) -> tuple[TableVersion, ...] | None:
    """The newest versions of some tables that agree on every source that two of them have; None if there are none.

    Versions only grow, so of two that disagree the one that is ahead has to step back.
    """
    choices = [table.recent for table in tables]
    if not all(choices):
        return None
    chosen = [0] * len(choices)
    while True:
        ahead = _one_ahead([choice[i] for choice, i in zip(choices, chosen, strict=True)])
        if ahead is None:
            return tuple(choice[i] for choice, i in zip(choices, chosen, strict=True))
        chosen[ahead] += 1
        if chosen[ahead] == len(choices[ahead]):
            return None


def _one_ahead(versions: Sequence[TableVersion]) -> int | None:
    """The position of a version that has a source at a later version than another has it."""
    least: dict[str, int] = {}
    for one in versions:
        for source, number in one.reach.items():
            least[source] = min(number, least.get(source, number))
    for position, one in enumerate(versions):
        if any(number > least[source] for source, number in one.reach.items()):
            return position
    return None
