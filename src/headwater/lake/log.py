"""The log: from the files of ``_delta_log`` to the state of a table at a version.

The state at version v is the newest checkpoint at or before v with the commits after it replayed in order.
A checkpoint comes in three shapes, all read here: one Parquet file, several parts, or a manifest with
sidecars (V2). A damaged checkpoint is passed over when the commits that led to it are still there.

Within a commit removals are applied before additions, so a file whose deletion vector changes (removed under
the old vector, added under the new one) stays one entry. `LogState` is never changed after it is made:
`advance` returns a new one, so readers may hold any number of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base.errors import CorruptionError, HeadwaterError, InputError, NotFoundError
from headwater.base.storage import Storage
from headwater.lake.actions import AddFile, Commit, Metadata, Protocol, RemoveFile, parse_commit, take_action
from headwater.lake.checkpoint_file import read_actions

__all__ = [
    "LOG",
    "LogState",
    "Segment",
    "advance",
    "commit_path",
    "extend",
    "is_sound",
    "is_there",
    "last_checkpoint",
    "list_segment",
    "load",
    "not_a_table",
    "oldest_readable",
    "read_commit",
]

LOG = "_delta_log"
_KEPT_ACTIONS = 1000
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json)$")


def commit_path(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


@dataclass(frozen=True, slots=True)
class LogState:
    """Everything the log says of a table at one version."""

    version: int
    timestamp_ms: int
    protocol: Protocol
    metadata: Metadata
    files: Mapping[str, AddFile]
    txns: Mapping[str, int]
    domains: Mapping[str, dict[str, Any]]
    tombstones: Mapping[tuple[str, str | None], RemoveFile] | None = None
    origin: tuple[int, int] | None = None
    newest: Commit | None = None
    """The commit of this version, where it was read and is not large: whoever wants the last change has it at hand."""


@dataclass(slots=True)
class _Draft:
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[str, AddFile] = field(default_factory=dict)
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    tombstones: dict[tuple[str, str | None], RemoveFile] | None = None
    timestamp_ms: int = 0
    origin: tuple[int, int] | None = None
    newest: Commit | None = None

    def apply(self, commit: Commit) -> None:
        self.protocol = commit.protocol or self.protocol
        self.metadata = commit.metadata or self.metadata
        for removed in commit.removes:
            self.files.pop(removed.path, None)
            if self.tombstones is not None:
                self.tombstones[removed.key] = removed
        for added in commit.adds:
            self.files[added.path] = added
            if self.tombstones is not None:
                self.tombstones.pop(added.key, None)
        self.txns.update(commit.txns)
        for name, body in commit.domains.items():
            if body.get("removed"):
                self.domains.pop(name, None)
            else:
                self.domains[name] = body
        self.timestamp_ms = commit.timestamp_ms or self.timestamp_ms
        self.origin = commit.origin or self.origin
        self.newest = commit if len(commit.adds) + len(commit.removes) <= _KEPT_ACTIONS else None

    @property
    def has_in_commit_timestamps(self) -> bool:
        return self.protocol is not None and "inCommitTimestamp" in (self.protocol.writer_features or ())

    def gather(self, commit: Commit) -> None:
        """Take in what one file of a checkpoint says.

        A tombstone there may be of an older vector of a file that is alive, in this file or in another.
        """
        tombstones, commit.removes = commit.removes, []
        self.apply(commit)
        self.newest = None
        if self.tombstones is not None:
            self.tombstones |= {removed.key: removed for removed in tombstones}

    def finish(self, version: int, where: str) -> LogState:
        if self.protocol is None or self.metadata is None:
            raise CorruptionError.no_metadata(where)
        return LogState(
            version,
            self.timestamp_ms,
            self.protocol,
            self.metadata,
            self.files,
            self.txns,
            self.domains,
            self.tombstones,
            self.origin,
            self.newest,
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """The log files that are there: commits by version (with their time), and whole checkpoints by version."""

    commits: Mapping[int, int]
    checkpoints: Mapping[int, tuple[str, ...]]
    sizes: Mapping[int, int]
    checkpoint_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        return max([*self.commits, *self.checkpoints], default=-1)


def list_segment(storage: Storage, *, after: int | None = None) -> Segment:
    """The files of the log, those of versions >= ``after`` only if it is given."""
    start = f"{LOG}/{after:020d}" if after is not None else None
    commits: dict[int, int] = {}
    sizes: dict[int, int] = {}
    parts: dict[tuple[int, str], dict[int, str]] = {}
    wanted: dict[tuple[int, str], int] = {}
    checkpoint_bytes: dict[str, int] = {}
    for entry in storage.list(f"{LOG}/", after=start):
        name = entry.path.rsplit("/", 1)[-1]
        if "/" in entry.path[len(LOG) + 1 :]:
            continue  # _sidecars and the like
        if m := _COMMIT.match(name):
            commits[int(m[1])], sizes[int(m[1])] = entry.modified_ms, entry.size
        elif (m := _CHECKPOINT.match(name)) and entry.size:
            kind = f"multi{m[3]}" if m[2] else (m[4] or "single")
            parts.setdefault((int(m[1]), kind), {})[int(m[2] or 0)] = entry.path
            wanted[int(m[1]), kind] = int(m[3]) if m[2] else 1
            checkpoint_bytes[entry.path] = entry.size
    checkpoints: dict[int, tuple[str, ...]] = {}
    for (version, kind), files in sorted(parts.items()):
        if len(files) == wanted[version, kind]:
            checkpoints.setdefault(version, tuple(files[i] for i in sorted(files)))
    return Segment(commits, checkpoints, sizes, checkpoint_bytes)


def last_checkpoint(storage: Storage) -> int | None:
    try:
        return int(json.loads(storage.get(f"{LOG}/_last_checkpoint"))["version"])
    except (NotFoundError, ValueError, KeyError, TypeError):
        return None  # it is only a hint


def read_commit(storage: Storage, version: int, modified_ms: int | None = None) -> Commit:
    """One commit of the log; `NotFoundError` if there is none of that version."""
    data = storage.get(commit_path(version))
    if modified_ms is None:
        entry = storage.head(commit_path(version))
        modified_ms = entry.modified_ms if entry else 0
    return parse_commit(data, version, modified_ms, storage.url)


def load(storage: Storage, version: int | None = None, *, tombstones: bool = False) -> LogState:
    """The state of the table at ``version``, or now."""
    if version is not None and version < 0:
        raise InputError.bad_argument("version", version, "a version of the table, 0 or more")
    hint = last_checkpoint(storage)
    after = hint if hint is not None and (version is None or version >= hint) else None
    segment = list_segment(storage, after=after)
    if segment.newest < 0 and after is not None:
        segment = list_segment(storage)
    if segment.newest < 0:
        raise not_a_table(storage)
    target = segment.newest if version is None else version
    if target > segment.newest:
        raise NotFoundError.version(target, segment.newest, storage.url)
    try:
        return _replay(storage, segment, target, tombstones)
    except HeadwaterError as e:
        if after is None and not isinstance(e, NotFoundError):
            raise
        # The hint may point at a damaged or vanished checkpoint: the whole log may still do. Or entries were cleaned
        # up between listing and reading them: another look tells.
        return _replay(storage, list_segment(storage), target, tombstones)


def not_a_table(storage: Storage) -> HeadwaterError:
    if next(iter(storage.list("")), None) is not None:
        return InputError.not_a_table(storage.url)
    return NotFoundError.folder(storage.url)


def _replay(storage: Storage, segment: Segment, target: int, tombstones: bool) -> LogState:
    failure: HeadwaterError | None = None
    for base in sorted((v for v in segment.checkpoints if v <= target), reverse=True):
        if not all(v in segment.commits for v in range(base + 1, target + 1)):
            continue
        try:
            draft = _read_checkpoint(storage, segment.checkpoints[base], tombstones, segment.checkpoint_bytes)
        except CorruptionError as e:
            failure = failure or e
            continue
        draft.timestamp_ms = segment.commits.get(base, 0)
        draft.origin = (segment.sizes.get(base, 0), draft.timestamp_ms)
        if base == target and base in segment.commits and draft.has_in_commit_timestamps:
            draft.timestamp_ms = read_commit(storage, base, draft.timestamp_ms).timestamp_ms
        return _roll(storage, segment, draft, base + 1, target)
    missing = next((v for v in range(target + 1) if v not in segment.commits), None)
    if missing is None:
        return _roll(storage, segment, _Draft(tombstones={} if tombstones else None), 0, target)
    if failure is not None:
        raise failure
    oldest = oldest_readable(segment)
    if oldest is None or target >= oldest:
        gap = next(v for v in range(oldest or 0, target + 1) if v not in segment.commits)
        raise CorruptionError.log_gap(gap, storage.url)
    raise NotFoundError.version_gone(target, oldest, segment.newest, storage.url)


def oldest_readable(segment: Segment) -> int | None:
    """The oldest version that can be rebuilt."""
    starts = list(segment.checkpoints)
    if 0 in segment.commits:
        starts.append(0)
    return min(starts, default=None)


def _roll(storage: Storage, segment: Segment, draft: _Draft, first: int, last: int) -> LogState:
    for version in range(first, last + 1):
        draft.apply(read_commit(storage, version, segment.commits[version]))
    return draft.finish(last, storage.url)


def advance(storage: Storage, state: LogState) -> LogState:
    """The newest state, from an older one and the commits after it."""
    if _is_newest(storage, state):
        return state
    segment = list_segment(storage, after=state.version)
    if not all(v in segment.commits for v in range(state.version, segment.newest + 1)):
        return load(storage)  # cleaned up past us, or deleted
    here = state.version
    if here not in segment.commits or not _is_origin(state, segment.sizes[here], segment.commits[here]):
        return load(storage)  # another table lies here now
    news = range(state.version + 1, segment.newest + 1)
    if not news:
        return state
    return extend(state, [read_commit(storage, v, segment.commits[v]) for v in news], storage.url)


def _is_newest(storage: Storage, state: LogState) -> bool:
    """Whether nothing follows ``state``, where that is quick to tell: a folder's listing is as long as its log,
    and two looks are not.
    """
    if storage.local_path("") is None:
        return False
    there = storage.head(commit_path(state.version))
    if there is None or not _is_origin(state, there.size, there.modified_ms):
        return False
    # Old commits are deleted from the oldest on, so what follows one that is there is there too.
    return storage.head(commit_path(state.version + 1)) is None


def is_there(storage: Storage, state: LogState) -> bool:
    """Whether the table still is the one that ``state`` was read from; others may have committed to it since."""
    if state.origin is None or not state.origin[0]:  # its commit was cleaned up, and a checkpoint says it all
        return load(storage).metadata.id == state.metadata.id
    there = storage.head(commit_path(state.version))
    return there is not None and _is_origin(state, there.size, there.modified_ms)


def _is_origin(state: LogState, size: int, now_ms: int) -> bool:
    """Whether the newest commit of ``state`` is still the file it was read from."""
    was, modified_ms = state.origin or (0, 0)
    # Object stores tell a time in milliseconds when they list, and in seconds when they are asked for one object.
    unit = 1 if modified_ms % 1000 and now_ms % 1000 else 1000
    return size == was and modified_ms // unit == now_ms // unit


def extend(state: LogState, commits: Iterable[Commit], where: str) -> LogState:
    """``state`` with the commits that follow it."""
    draft = _Draft(
        state.protocol,
        state.metadata,
        dict(state.files),
        dict(state.txns),
        dict(state.domains),
        None if state.tombstones is None else dict(state.tombstones),
        state.timestamp_ms,
        state.origin,
        state.newest,
    )
    version = state.version
    for commit in commits:
        assert commit.version == version + 1, "commits are applied in order, with none left out"
        draft.apply(commit)
        version = commit.version
    return draft.finish(version, where)


# ------------------------------------------------------------------ checkpoints


def _read_checkpoint(
    storage: Storage, paths: Iterable[str], tombstones: bool, sizes: Mapping[str, int] = MappingProxyType({})
) -> _Draft:
    draft = _Draft(tombstones={} if tombstones else None)
    for path in paths:
        for sidecar in _read_checkpoint_file(storage, path, draft, sizes.get(path)):
            name = unquote(sidecar).rsplit("/", 1)[-1]
            _read_checkpoint_file(storage, f"{LOG}/_sidecars/{name}", draft)
    if draft.protocol is None or draft.metadata is None:
        raise CorruptionError.checkpoint(next(iter(paths)), "it has no protocol or metadata", storage.url)
    return draft


def is_sound(storage: Storage, paths: Iterable[str]) -> bool:
    """Whether a checkpoint can be read, so that the commits before it are not needed any more."""
    try:
        _read_checkpoint(storage, list(paths), tombstones=False)
    except CorruptionError:
        return False
    return True


def _read_checkpoint_file(storage: Storage, path: str, draft: _Draft, size: int | None = None) -> list[str]:
    """Take the actions of one checkpoint file into ``draft``; returns the sidecars it names."""
    try:
        if path.endswith(".json"):
            return _read_manifest(storage.get(path), draft)
        with storage.open_input(path, size=size) as source, pq.ParquetFile(source) as file:
            commit, sidecars = read_actions(file, removes=draft.tombstones is not None)
            draft.gather(commit)
            return sidecars
    except NotFoundError as e:
        raise CorruptionError.checkpoint(path, "a file it names is missing", storage.url) from e
    except (pa.ArrowInvalid, OSError, ValueError, KeyError, TypeError) as e:
        if isinstance(e, HeadwaterError):
            raise
        raise CorruptionError.checkpoint(path, str(e).split("\n", 1)[0], storage.url) from e


def _read_manifest(data: bytes, draft: _Draft) -> list[str]:
    commit, sidecars = Commit(0, 0), []
    for line in data.splitlines():
        action = json.loads(line)
        if "sidecar" in action:
            sidecars.append(str(action["sidecar"]["path"]))
        else:
            take_action(commit, action)
    draft.gather(commit)
    return sidecars
