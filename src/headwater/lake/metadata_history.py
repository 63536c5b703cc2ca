"""The history of a definition: which metadata was in force at each version of an interval.

A data file is laid out as the definition said when it was added: its columns, their names inside the file, and which
of them are not in the file at all but partition values in the log. The log says it with every change, so the commits
of an interval and the metadata before it tell it for each version. The metadata before it is loaded only when it is
asked for, because it may cost a checkpoint, and may be gone with log entries that were cleaned up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from headwater.base.errors import NotFoundError
from headwater.base.storage import Storage
from headwater.lake import log
from headwater.lake.actions import Commit, Metadata
from headwater.lake.definition import is_mapped
from headwater.lake.snapshot import Snapshot

__all__ = ["MetadataHistory", "commits_until", "read_commits"]


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
