"""Commits to tables of a server's data folder: date folders that were loaded, rows that were pushed.

A table lies below the data folder as an online table lies below a lake (`store`): record files, and a log of records
whose newest entry says which of them count. Every change is one attempt: take the lock of this process and of the
table's folder, look at the newest commit, write files that nobody names yet, and commit one record that names them.
Whoever loses the commit to another machine begins again from what won. A crash leaves files that no record names, which
the next writer sweeps.

Files that a commit no longer names stay until the commit after it, for readers that have just looked.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headwater.base import faults
from headwater.base.errors import ConflictError
from headwater.base.storage import Storage, now_ms
from headwater.derived.record import LastRefresh
from headwater.serving.record import OnlineRecord
from headwater.serving.store import OnlineStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.derived.record_log import Committed
    from headwater.derived.reports import Mode

__all__ = ["Change", "Commits", "Head"]

_TRIES = 20
_YOUNG_MS = 600_000
_LAST = "_headwater/dropped"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest commit of a table: its number (of a table that is not there, the last it ever had)
    and what it says.
    """

    number: int
    definition: Mapping[str, Any] | None = None
    record: OnlineRecord | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What an attempt has written and wants to commit. Of the record, files and frontier are enough."""

    definition: Mapping[str, Any]
    record: OnlineRecord
    mode: Mode | None = "full"
    """How it came about; None leaves what the record says of the last change of rows."""
    rows_in: int = 0
    rows_out: int = 0


class Commits:
    """Changes one table of a data folder.

    Parameters
    ----------
    root : Storage
        the data folder
    name : str
        of the table
    """

    def __init__(self, root: Storage, name: str) -> None:
        self.root, self.name = root, name
        self.store = OnlineStore(root, name)
        self.log = self.store.log

    def head(self) -> Head:
        """What is committed now."""
        found = self.log.newest()
        return Head(self._last_number()) if found is None else self._head(found)

    def _head(self, found: Committed) -> Head:
        return Head(found.number, found.definition, self.store.record(found))

    def change(self, attempt: Callable[[Head, int], Change | None], *, alone: bool = True) -> Head:
        """Commit what ``attempt`` makes of the newest commit for the next number; None changes nothing.

        ``alone``: nobody writes files of the table without the lock, so that whatever is not named is an orphan.
        """
        for left in reversed(range(_TRIES)):
            try:
                with self.held():
                    return self._attempt(attempt, alone=alone)
            except ConflictError as e:
                if e.code != "E4001" or not left:
                    raise
        raise AssertionError("the last attempt raises")

    def _attempt(self, attempt: Callable[[Head, int], Change | None], *, alone: bool) -> Head:
        began, place, head = time.perf_counter(), self._place, self.head()
        if place.suspicious:
            self.sweep(head, alone=alone)
            place.suspicious = False
        number = head.number + 1
        place.suspicious = True
        made = attempt(head, number)
        if made is None:
            place.suspicious = False
            return head
        named = head.record.files if head.record is not None else set()
        record = replace(made.record, published=number, superseded=tuple(sorted(named - made.record.files)))
        if made.mode is not None:
            seconds = round(time.perf_counter() - began, 6)
            record = replace(record, last=LastRefresh(now_ms(), made.mode, seconds, made.rows_in, made.rows_out))
        self.log.commit(head.number, made.definition, record.to_json())
        place.suspicious = False
        self._tidy(head, record)
        return Head(number, made.definition, record)

    def _tidy(self, before: Head, after: OnlineRecord) -> None:
        """Delete what neither of the last two commits names."""
        old = before.record.superseded if before.record is not None else ()
        gone = [name for name in old if name not in after.files]
        for name in gone:
            faults.point("online.file.before_delete", name)
        self.store.delete_files(gone)
        self.log.sweep()

    def sweep(self, head: Head, *, alone: bool) -> None:
        """Delete files that no commit names, which a process left that ended; somebody holds the lock."""
        named = set() if head.record is None else {*head.record.files, *head.record.superseded}
        gone = [name for name in self.store.file_names() if name not in named]
        if not alone:
            gone = [name for name in gone if self._is_old(name)]
        self.store.delete_files(gone)

    def sweep_once(self) -> None:
        """Sweep, the first time in the life of this process; for tables that nobody writes to without the lock."""
        if self._place.suspicious:
            self.change(lambda _head, _number: None)

    def _is_old(self, name: str) -> bool:
        found = self.root.head(f"{self.store.folder.path}/{name}")
        return found is not None and found.modified_ms < now_ms() - _YOUNG_MS

    def remove(self) -> None:
        """Delete the table; one that is made again by the same name goes on with the next number.

        So nobody who followed the old one takes a version of the new one for what is known already.
        """
        with self.held():
            found = self.log.newest()
            if found is not None:
                self.root.put(f"{_LAST}/{self.name}", str(found.number).encode())
                faults.point("online.drop.before_remove", self.name)
                self.log.remove()
            self._place.folder.remove()

    def _last_number(self) -> int:
        path = f"{_LAST}/{self.name}"
        return int(self.root.get(path)) if self.root.exists(path) else 0

    # -- who writes ------------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the one on this machine that changes the table."""
        place = self._place
        with place.guard, place.folder.held():
            place.suspicious = place.suspicious or place.folder.after_another
            yield

    @property
    def _place(self) -> _Place:
        key = (os.getpid(), self.root.url, self.name)  # a process that was forked has its own
        with _guard:
            if key not in _places:
                _places[key] = _Place(self.store)
            return _places[key]


class _Place:
    """What this process has of a table: a lock between threads, and the folder whose lock is between processes."""

    def __init__(self, store: OnlineStore) -> None:
        self.guard = threading.RLock()
        self.folder = store.folder
        self.suspicious = True
        """Whether files may lie about that an attempt left which did not end."""


_places: dict[tuple[int, str, str], _Place] = {}
_guard = threading.Lock()
