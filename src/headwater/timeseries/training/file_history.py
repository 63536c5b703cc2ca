"""The history of a table, file by file: which of its rows were visible from when until when.

A Delta table at a version is a set of files less the rows that their deletion vectors mark. So a row of a file was
visible from the commit that added the file until the one that marked the row or removed the file, whatever that commit
was meant to do: a correction is a row that goes and one that comes in the same moment. It is enough to read each file
once, with all its rows, and the vectors that it has had. Commit times are those by which time travel goes
(`lake.history`).

How far back this goes: log entries are cleaned up, and vacuum deletes files. `FileHistory.of` looks at both before
anything is read, and says since when it can answer where it cannot.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headwater.base.errors import NotFoundError
from headwater.base.storage import Storage
from headwater.lake import log, partitions, snapshot
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.history import commit_times
from headwater.lake.interval import Interval, file_events
from headwater.lake.snapshot import Snapshot
from headwater.timeseries.operators.known_asof import FOREVER

__all__ = ["FileHistory", "FileLife"]


@dataclass(frozen=True)
class FileLife:
    """A file as it was from each of some moments on, under its deletion vectors; ``end`` is when it went."""

    states: tuple[tuple[int, AddFile], ...]
    end: int
    metadata: Metadata | None
    """The definition that it was written under, if that is not today's."""

    @property
    def file(self) -> AddFile:
        """The file under its last vector."""
        return self.states[-1][1]

    def to_json(self) -> list[Any]:
        """For tasks; without the definition."""
        return [[[at, file.to_action()["add"]] for at, file in self.states], self.end]

    @classmethod
    def from_json(cls, found: list[Any], metadata: Metadata | None) -> FileLife:
        """The inverse."""
        states, end = found
        return cls(tuple((at, AddFile.from_json(action)) for at, action in states), end, metadata)


@dataclass(frozen=True)
class FileHistory:
    """The files that a table has had since a moment, in microseconds."""

    until: Snapshot
    lives: tuple[FileLife, ...]

    @classmethod
    def of(cls, until: Snapshot, name: str, earliest: int | None) -> FileHistory:
        """What was visible at ``earliest`` and later; None: since the table was made.

        An error if that is not known any more.
        """
        storage = until.storage
        times = {version: 1_000 * ms for version, ms in commit_times(storage).items() if version <= until.version}
        before = [v for v, at in times.items() if earliest is not None and at <= earliest]
        oldest = _oldest(storage)
        first = max(before, default=-1)
        if first < oldest and not (first < 0 and oldest == 0):
            raise _gone(name, earliest, times.get(oldest, 0), storage.url)
        open_: dict[str, list[tuple[int, AddFile]]] = {}
        layout: dict[str, int] = {}
        lives: list[FileLife] = []
        interval = Interval.read(until, first)
        if first >= 0:
            for path, file in snapshot.at_version(storage, first).files.items():
                open_[path], layout[path] = [(times[first], file)], first
        current = until.state.metadata

        def ended(path: str, end: int) -> None:
            metadata = interval.history.at(layout[path])
            lives.append(FileLife(tuple(open_.pop(path)), end, None if metadata == current else metadata))

        for commit in interval.commits:
            at = times[commit.version]
            back = {f.path for f in commit.adds}
            for event in file_events(commit, interval.history, storage):
                path = event.file.path
                if event.came:
                    open_.setdefault(path, []).append((at, event.file))
                    layout[path] = event.layout
                elif path not in back and path in open_:
                    ended(path, at)
        for path in list(open_):
            ended(path, FOREVER)
        found = cls(until, tuple(lives))
        found._check(name, earliest)
        return found

    def _check(self, name: str, earliest: int | None) -> None:
        """Raise if a file or a vector that is not in use any more was deleted."""
        storage, now = self.until.storage, self.until.files
        missing = []
        for life in self.lives:
            path = partitions.decode_path(life.file.path)
            if life.file.path not in now and "://" not in path and not storage.exists(path):
                missing.append(life.end)
                continue
            live = now[life.file.path].deletion_vector if life.file.path in now else None
            ends = [at for at, _ in life.states[1:]] + [life.end]
            for (_, file), end in zip(life.states, ends, strict=True):
                vector = file.deletion_vector
                if vector is None or vector.storage_type != "u":
                    continue
                used = live is not None and live.unique_id == vector.unique_id
                if not used and not storage.exists(vector.relative_path()):
                    missing.append(end)
        if missing:
            raise _gone(name, earliest, max(missing), storage.url)

    def texts(self) -> tuple[list[Metadata], list[str]]:
        """All lives as texts for tasks, and the definitions that they name by number."""
        known: list[Metadata] = []
        found = []
        for life in self.lives:
            number = -1
            if life.metadata is not None:
                if life.metadata not in known:
                    known.append(life.metadata)
                number = known.index(life.metadata)
            found.append(json.dumps([life.to_json(), number]))
        return known, found


def _oldest(storage: Storage) -> int:
    """The oldest version that can be read."""
    segment = log.list_segment(storage)
    oldest = log.oldest_readable(segment)
    return segment.newest if oldest is None else oldest


def _gone(name: str, earliest: int | None, since: int, where: str) -> NotFoundError:
    asked = "the beginning" if earliest is None else _moment(earliest)
    return NotFoundError.history_gone(name, asked, _moment(since), where)


def _moment(at: int) -> str:
    if at >= FOREVER:
        return "now"
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(timespec="milliseconds")
