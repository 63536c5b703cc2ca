"""File changes: which data files differ between two versions of a table, and how.

Whoever keeps something for each data file (a search index, a mirror of the rows of each file) follows files, not rows:
a file that OPTIMIZE wrote holds no new row, and has to be covered all the same. ``file_changes(until, after)`` gives
one `ChangedFile` for each data file that is in one of the two versions only, or in both under different deletion
vectors:

- ``added`` and ``removed``: the file came or went by a commit that changed rows;
- ``rewritten``: it came or went by a commit with ``dataChange=false``. Its rows are those of the files that the same
  commit exchanged for it, which `FileChanges.rewrites` lists commit by commit;
- ``vector_changed``: the file is the same, and other rows of it are deleted. `vector_difference` gives their positions.

A file that came and went in between does not appear, nor does one that is as it was; that its statistics were written
again is no change. The kind says how the file itself came or went, last if that happened repeatedly: a file that was
written by OPTIMIZE and lost rows since is ``rewritten``, with a vector. So for all versions

    files(after) - those that went + those that came, and the new vectors = files(until)         (`FileChanges.apply`)

The cost is that of reading the commits in between. One question may need the files of version ``after``: Delta says of
a file that is added with ``dataChange=false`` that it is there already (its statistics are written again) or that its
rows are those of files which the commit removes. A commit that removes nothing is the first case; for one that does,
the files of ``after`` tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pyroaring import BitMap64

from headwater.lake import log
from headwater.lake.actions import AddFile, Commit, Metadata
from headwater.lake.interval import FileEvent, Interval, file_events
from headwater.lake.scan import live_vector
from headwater.lake.snapshot import Snapshot

__all__ = ["ChangedFile", "FileChanges", "Kind", "Rewrite", "file_changes", "file_changes_of", "vector_difference"]

Kind = Literal["added", "removed", "rewritten", "vector_changed"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One data file that differs between two versions."""

    kind: Kind
    before: AddFile | None
    """The file as the earlier version has it, None if it has not: path, partition values, size and vector."""
    after: AddFile | None
    """The file as the later version has it, exactly as `Snapshot.files` does; None if it has not."""
    version: int
    """The commit by which it came, went, or got its vector."""
    metadata: Metadata
    """What the file is laid out by: the definition of the version that added it last, or the last that had it."""

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def file(self) -> AddFile:
        """The file as the later of the two versions that has it."""
        file = self.after or self.before
        assert file is not None, "a file that is in neither version has not changed"
        return file


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What one commit with ``dataChange=false`` exchanged: the rows of ``before`` lie in ``after``."""

    version: int
    before: tuple[AddFile, ...]
    after: tuple[AddFile, ...]


@dataclass(frozen=True)
class FileChanges:
    """The data files that differ between version ``after`` and version ``until`` of a table, in the order of the log.

    ``table_id`` is the identity of the table at ``until``: whoever holds files of another one starts from scratch.
    ``rewrites`` are all exchanges in between, oldest first. A file in them may itself have come or gone in between.
    """

    after: int
    until: int
    table_id: str
    files: tuple[ChangedFile, ...]
    rewrites: tuple[Rewrite, ...] = ()

    def __iter__(self) -> Iterator[ChangedFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def added(self) -> tuple[ChangedFile, ...]:
        return self._of("added")

    @property
    def removed(self) -> tuple[ChangedFile, ...]:
        return self._of("removed")

    @property
    def rewritten(self) -> tuple[ChangedFile, ...]:
        return self._of("rewritten")

    @property
    def vector_changed(self) -> tuple[ChangedFile, ...]:
        return self._of("vector_changed")

    def _of(self, kind: Kind) -> tuple[ChangedFile, ...]:
        return tuple(f for f in self.files if f.kind == kind)

    def apply(self, files: Mapping[str, AddFile]) -> dict[str, AddFile]:
        """The files of version ``until``, by path, from those of version ``after``."""
        went = {f.path for f in self.files if f.after is None}
        came = {f.path: f.after for f in self.files if f.after is not None}
        return {path: came.get(path, file) for path, file in files.items() if path not in went} | came


def file_changes(until: Snapshot, after: int) -> FileChanges:
    """The change of files from version ``after`` (-1: before the first) to ``until``.

    Raises `NotFoundError` if log entries of the interval were cleaned up.
    """
    return file_changes_of(Interval.read(until, after))


def file_changes_of(interval: Interval) -> FileChanges:
    """The change of files in an interval whose commits are at hand."""
    walk = _Walk(interval)
    for commit in interval.commits:
        walk.take(commit)
    end = interval.until
    files = tuple(found for path in walk.paths.values() if (found := path.changed(interval)) is not None)
    return FileChanges(interval.after, end.version, end.table_id, files, tuple(walk.rewrites))


def vector_difference(snapshot: Snapshot, before: AddFile, after: AddFile) -> tuple[BitMap64, BitMap64]:
    """The positions of a file that died from one vector to another, and those that came back."""
    if before.key == after.key:
        return BitMap64(), BitMap64()
    old, new = (live_vector(snapshot, f) or BitMap64() for f in (before, after))
    return new - old, old - new


@dataclass(slots=True)
class _Path:
    """What the interval has done to one path so far."""

    before: tuple[AddFile, int] | None
    after: tuple[AddFile, int] | None
    moved_data: bool = True  # whether the commit by which it last came or went changed rows
    version: int = 0

    def changed(self, interval: Interval) -> ChangedFile | None:
        if self.before is None and self.after is None:
            return None
        old, new = self.before, self.after
        kind: Kind
        if old is not None and new is not None:
            if old[0].key == new[0].key:
                return None
            kind = "vector_changed"
        elif not self.moved_data:
            kind = "rewritten"
        else:
            kind = "added" if old is None else "removed"
        _, layout = new or old or (None, 0)
        metadata = interval.history.at(layout)
        # A checkpoint does not keep all that a commit said of a file, so the snapshot's own entry is given.
        now = None if new is None else interval.until.files.get(new[0].path, new[0])
        return ChangedFile(kind, old and old[0], now, self.version, metadata)


class _Walk:
    """The files of the interval, commit by commit."""

    def __init__(self, interval: Interval) -> None:
        self.interval = interval
        self.paths: dict[str, _Path] = {}
        self.rewrites: list[Rewrite] = []

    def take(self, commit: Commit) -> None:
        interval = self.interval
        by_path: dict[str, list[FileEvent]] = {}
        rewritten: tuple[list[AddFile], list[AddFile]] = [], []
        for event in file_events(commit, interval.history, interval.until.storage):
            by_path.setdefault(event.file.path, []).append(event)
            if not event.data_change:
                rewritten[event.came].append(event.file)
        for name, events in by_path.items():
            self._move(name, events, commit)
        if rewritten[0]:
            self.rewrites.append(Rewrite(commit.version, tuple(rewritten[0]), tuple(rewritten[1])))

    def _move(self, name: str, events: list[FileEvent], commit: Commit) -> None:
        """Take in what a commit did to one path: it went, it came, or both, which is another vector."""
        path = self.paths.get(name)
        if path is None:
            there = self._was_there(events[0], commit)
            path = self.paths[name] = _Path(there, there)
        last = events[-1]
        if last.came != (path.after is not None):
            path.moved_data = last.data_change
        path.after = (last.file, last.layout) if last.came else None
        path.version = commit.version

    def _was_there(self, event: FileEvent, commit: Commit) -> tuple[AddFile, int] | None:
        """The file as version ``after`` has it, when this is the first that the interval says of its path."""
        if not event.came:
            return event.file, event.layout
        if event.data_change:
            return None
        found = event.file if not commit.removes else self._files_before.get(event.file.path)
        return None if found is None else (found, self.interval.after)

    @cached_property
    def _files_before(self) -> Mapping[str, AddFile]:
        after = self.interval.after
        return log.load(self.interval.until.storage, after).files if after >= 0 else {}
