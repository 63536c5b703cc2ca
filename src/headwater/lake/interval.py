"""Intervals: the commits between two versions of a table, and which files came and went in each, read once.

The change of rows (`changes`) and the change of files (`file_changes`) between two versions are two sums over the same
events, so both start here. An event is one file that a commit added or removed, as an `AddFile` that can be read, with
the version whose definition the file is laid out by. Within a commit removals come before additions, as in `log`, so a
file whose deletion vector changes goes under its old vector and comes under the new one.

Entries of the change data feed are no events: they are rows of commits, not data files of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headwater.base.errors import CorruptionError, InputError
from headwater.base.storage import Storage
from headwater.lake import log
from headwater.lake.actions import AddFile, Commit, RemoveFile
from headwater.lake.metadata_history import MetadataHistory, commits_until
from headwater.lake.snapshot import Snapshot

__all__ = ["FileEvent", "Interval", "file_events"]


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A file that one commit added or removed."""

    file: AddFile
    came: bool
    data_change: bool
    layout: int
    """The version whose metadata the file is laid out by: that of the commit, or the one before for a file that went."""


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
