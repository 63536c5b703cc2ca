"""Intervals: the commits between two versions of a table, and which files came and went in each, read once.

The change of rows (`changes`) and the change of files (`file_changes`) between two versions are two sums over the same
events, so both start here. An event is one file that a commit added or removed, as an `AddFile` that can be read, with
the version whose definition the file is laid out by. Within a commit removals come before additions, as in `log`, so a
file whose deletion vector changes goes under its old vector and comes under the new one.

Entries of the change data feed are no events: they are rows of commits, not data files of the table.

**Metadata.** A data file is laid out as the definition said when it was added: its columns, their names inside the
file, and which of them are partition values in the log. The log says it with every change, so the commits of an
interval and the metadata before it give it for each version (`MetadataHistory`). The metadata before it is loaded only
when it is asked for, because it may cost a checkpoint, and may be gone with log entries that were cleaned up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from headwater.base.errors import CorruptionError, InputError, NotFoundError
from headwater.base.storage import Storage
from headwater.lake import log
from headwater.lake.actions import AddFile, Commit, Metadata, RemoveFile
from headwater.lake.definition import is_mapped
from headwater.lake.snapshot import Snapshot

__all__ = ["FileEvent", "Interval", "MetadataHistory", "commits_until", "file_events", "read_commits"]


def read_commits(storage: Storage, after: int, until: int) -> list[Commit]:
    """The commits after version ``after`` up to ``until``; `NotFoundError` if log entries were cleaned up."""
    return [_read(storage, version, until) for version in range(after + 1, until + 1)]


def commits_until(until: Snapshot, after: int) -> list[Commit]:
    """`read_commits` up to a snapshot, whose own commit may be at hand."""
    newest = until.state.newest
    if newest is None or newest.version != until.version or after >= until.version:
        return read_commits(until.storage, after, until.version)
    before = range(after + 1, until.version)
    return [*(_read(until.storage, version, until.version) for version in before), newest]


def _read(storage: Storage, version: int, until: int) -> Commit:
    try:
        return log.read_commit(storage, version, 0)
    except NotFoundError:
        oldest = min(log.list_segment(storage).commits, default=until)
        raise NotFoundError.version_gone(version, oldest, until, storage.url) from None


class MetadataHistory:
    """The metadata in force at some versions.

    Parameters
    ----------
    commits
        All commits after a version, without a gap.
    before
        Gives the metadata of the version before them; asked for at most once.
    """

    def __init__(self, commits: Iterable[Commit], before: Callable[[], Metadata]) -> None:
        found = [(c.version, c.metadata) for c in commits if c.metadata is not None]
        self._versions: Sequence[int] = [version for version, _ in found]
        self._changed: Sequence[Metadata] = [metadata for _, metadata in found]
        self._load = before

    @classmethod
    def until(cls, end: Snapshot, after: int, commits: Sequence[Commit]) -> MetadataHistory:
        """The history from version ``after`` (-1: before the first) to that of ``end``; ``commits`` are all between."""
        changes = any(c.metadata is not None for c in commits)
        return cls(commits, lambda: log.load(end.storage, after).metadata if changes else end.state.metadata)

    def at(self, version: int) -> Metadata:
        """The metadata of a version; `NotFoundError` if the log does not say it any more."""
        place = bisect_right(self._versions, version)
        return self._changed[place - 1] if place else self._before

    def mapping_given_up(self, version: int) -> tuple[int, Metadata] | None:
        """The first version after ``version`` that gave up column mapping, and the metadata before it."""
        old = self.at(version)
        for later, metadata in zip(self._versions, self._changed, strict=True):
            if later <= version:
                continue
            if is_mapped(old.configuration) and not is_mapped(metadata.configuration):
                return later, old
            old = metadata
        return None

    @cached_property
    def _before(self) -> Metadata:
        return self._load()


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A file that one commit added or removed."""

    file: AddFile
    came: bool
    data_change: bool
    layout: int
    """The version whose metadata the file is laid out by: that of the commit,
    or the one before for a file that went.
    """


@dataclass(frozen=True)
class Interval:
    """The commits after version ``after`` up to that of ``until``, and the metadata of each version."""

    after: int
    until: Snapshot
    commits: Sequence[Commit]
    history: MetadataHistory

    @classmethod
    def read(cls, until: Snapshot, after: int) -> Interval:
        """Read the commits; `NotFoundError` if log entries were cleaned up, `InputError` if ``after`` is later."""
        if after > until.version:
            raise InputError.bad_range(after, until.version)
        commits = commits_until(until, after)
        return cls(after, until, commits, MetadataHistory.until(until, after, commits))


def file_events(
    commit: Commit, history: MetadataHistory, storage: Storage, *, data_changes_only: bool = False
) -> Iterator[FileEvent]:
    """The files that a commit removed and added, in that order; without those of ``dataChange=false`` if asked for."""
    gone = [f for f in commit.removes if f.data_change or not data_changes_only]
    # A file that goes was laid out as the version before says; that is asked for only where the two may differ.
    before = commit.version - 1 if gone and commit.metadata is not None else commit.version
    for removed in gone:
        partitioned = removed.partition_values is None and bool(history.at(before).partition_columns)
        file = _still_listed(removed, commit, storage) if partitioned else _as_added(removed)
        yield FileEvent(file, False, removed.data_change, before)
    for added in commit.adds:
        if added.data_change or not data_changes_only:
            yield FileEvent(added, True, added.data_change, commit.version)


def _as_added(gone: RemoveFile) -> AddFile:
    return AddFile(gone.path, gone.partition_values or {}, gone.size or 0, 0, deletion_vector=gone.deletion_vector)


def _still_listed(gone: RemoveFile, commit: Commit, storage: Storage) -> AddFile:
    """The file as the version before has it: old writers leave the partition values out when they remove it."""
    found = log.load(storage, commit.version - 1).files.get(gone.path)
    if found is None:
        name = log.commit_path(commit.version).rsplit("/", 1)[-1]
        raise CorruptionError.log_entry(name, f"it removes `{gone.path}`, which the table does not have", storage.url)
    return found
