"""The record log: the commits of an artefact whose output is not a Delta table.

An artefact that publishes a table commits through the table's log. For any other this is the log: one small file per
commit, numbered from 1, put if absent, so that of two writers one wins and the other begins again. The newest file
alone counts; it names everything that belongs to the artefact. Files are kept for a while, for readers that have just
looked.

::

    <lake>/_headwater/records/<kind>/<name>/<20 digits>.json

A file is JSON in UTF-8; version 1::

    {"format": "headwater record", "version": 1, "kind": "<kind>",
     "definition": {…},                  the kind's own
     "record": {…}}                      frontier, state, last refresh (`record`), and what the kind adds

So a lake's artefacts without tables are found by listing two levels of folders, and no table may take their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.base import faults
from headwater.base.errors import ConflictError, CorruptionError, NotFoundError
from headwater.base.storage import Entry, ObjectExistsError, Storage
from headwater.lake.catalog import RECORDS

__all__ = ["Committed", "RecordLog"]

_FORMAT = "headwater record"
_VERSION = 1
_NAME = re.compile(r"(\d{20})\.json")
_KEPT = 10


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit: its number, the definition that is in force, and the record."""

    number: int
    definition: Mapping[str, Any]
    record: Mapping[str, Any]


class RecordLog:
    """The commits of one artefact."""

    def __init__(self, root: Storage, kind: str, name: str) -> None:
        self.root = root
        self.kind = kind
        self.name = name
        self.path = f"{RECORDS}/{kind}/{name}"
        self._last: tuple[Entry, Committed] | None = None
        self._seen: list[int] = []
        """The numbers that were listed last, and those that were committed since."""

    def numbers(self) -> list[int]:
        """The numbers of the commits that are kept, oldest first."""
        names = (entry.path.rpartition("/")[2] for entry in self.root.list(f"{self.path}/"))
        self._seen = sorted(int(found[1]) for found in map(_NAME.fullmatch, names) if found)
        return list(self._seen)

    def newest(self) -> Committed | None:
        """The newest commit; None if the artefact is not there."""
        if (known := self._unchanged()) is not None:
            return known
        while numbers := self.numbers():
            try:
                there = self.root.head(self._path(numbers[-1]))
                found = self.read(numbers[-1])
            except NotFoundError:  # it was deleted meanwhile
                continue
            self._last = None if there is None else (there, found)
            return found
        return None

    def _unchanged(self) -> Committed | None:
        """The newest commit if it is the one that was read last, where that is quick to tell: two looks,
        and no listing.
        """
        if self._last is None or self.root.local_path("") is None:
            return None
        there, known = self._last
        if self.root.head(there.path) != there or self.root.head(self._path(known.number + 1)) is not None:
            return None
        return known

    def read(self, number: int) -> Committed:
        """A commit by its number."""
        path = self._path(number)
        try:
            found = json.loads(self.root.get(path))
            if found["format"] != _FORMAT or found["kind"] != self.kind:
                raise ValueError(f"it is no record of the kind {self.kind}")
            if found["version"] != _VERSION:
                raise ValueError(f"its version is {found['version']}, and this Headwater knows {_VERSION}")
            return Committed(number, found["definition"], found["record"])
        except (KeyError, TypeError, ValueError) as e:
            raise CorruptionError.state_file(path, str(e), self.root.url) from e

    def commit(self, after: int, definition: Mapping[str, Any], record: Mapping[str, Any]) -> int:
        """Make the commit that follows number ``after``, and give its number; ConflictError if another one does.

        This is the one moment at which anything changes.
        """
        value = {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": self.kind,
            "definition": dict(definition),
            "record": dict(record),
        }
        number = after + 1
        faults.point("derived.record.before_commit", self.name)
        try:
            self.root.put_if_absent(self._path(number), json.dumps(value, ensure_ascii=False).encode())
        except ObjectExistsError:
            raise ConflictError.lost("another refresh was committed first", number, self.kind, self.path) from None
        faults.point("derived.record.after_commit", self.name)
        self._seen.append(number)
        return number

    def superfluous(self) -> list[int]:
        """The commits that `sweep` would delete, oldest first."""
        return (self._seen or self.numbers())[:-_KEPT]

    def sweep(self, kept: int = _KEPT) -> None:
        """Delete all but the newest commits, of those that were there when they were listed for the last one."""
        known = self._seen or self.numbers()
        for number in known[:-kept]:
            self.root.delete(self._path(number))
        self._seen = known[-kept:]

    def remove(self) -> None:
        """Delete them all, the newest first: without it the artefact is gone."""
        for number in reversed(self.numbers()):
            self.root.delete(self._path(number))
        self.root.remove_folder(self.path)

    def _path(self, number: int) -> str:
        return f"{self.path}/{number:020d}.json"
