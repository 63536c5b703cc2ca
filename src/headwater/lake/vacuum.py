"""Vacuum: deleting files that no version within the retention needs.

A file may go when it belongs neither to the newest version nor to one that was replaced within the retention, and
is itself as old as that: a younger file may belong to a writer that has not committed yet. The same holds for
deletion-vector files and the change data feed. What crashed writers left behind goes the same way.

Only files in the table's own folder are deleted. The log may name files elsewhere, which belong to others, and may
name its own by their whole path; a folder that is a link to another place is passed over.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from headwater.base import events, faults
from headwater.base.errors import InputError
from headwater.base.storage import Entry, Storage, is_elsewhere, now_ms, path_below
from headwater.lake import log, partitions, snapshot
from headwater.lake.deletion_vectors import DeletionVector
from headwater.lake.properties import duration_ms

__all__ = ["Vacuumed", "vacuum"]

_SPARK_JOB = re.compile(r"^spark-[0-9a-f]{32}$")


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The files that were deleted, or would be."""

    files: tuple[str, ...]
    bytes: int
    dry_run: bool

    def __len__(self) -> int:
        return len(self.files)


def vacuum(
    storage: Storage, *, retention_hours: float | None = None, dry_run: bool = False, enforce_retention: bool = True
) -> Vacuumed:
    """Delete files that are past the retention."""
    snapshot.latest(storage).check_writable()
    state = log.load(storage, tombstones=True)
    least_ms = duration_ms(state.metadata.configuration, "delta.deletedFileRetentionDuration")
    keep_ms = least_ms if retention_hours is None else int(retention_hours * 3_600_000)
    if keep_ms < 0:
        raise InputError.bad_argument("retention_hours", retention_hours, "0 or more")
    if keep_ms < least_ms and enforce_retention:
        raise InputError.retention_too_short(keep_ms / 3_600_000, least_ms / 3_600_000, storage.url)
    cutoff = now_ms() - keep_ms
    needed = _needed(state, cutoff, storage)
    found = [e for e in storage.list("") if _is_inside(storage, e.path)]
    others = {e.path.split(f"/{log.LOG}/")[0] + "/" for e in found if f"/{log.LOG}/" in e.path}
    dead = [e for e in found if _may_go(e, needed, cutoff) and not _lies_in(e.path, others)]
    if not dry_run:
        with events.task(f"vacuum {storage.url}", total=len(dead), unit="files") as progress:
            for entry in dead:
                faults.point("lake.vacuum.before_delete", entry.path)
                storage.delete(entry.path)
                progress.advance(1)
        storage.sweep("", cutoff)
    return Vacuumed(tuple(e.path for e in dead), sum(e.size for e in dead), dry_run)


def _needed(state: log.LogState, cutoff_ms: int, storage: Storage) -> set[str]:
    needed: set[str] = set()

    def keep(path: str, vector: DeletionVector | None) -> None:
        needed.update(_below(storage, partitions.decode_path(path)))
        if vector is not None and vector.path is not None:
            needed.update(_below(storage, vector.path))

    for f in state.files.values():
        keep(f.path, f.deletion_vector)
    for tombstone in (state.tombstones or {}).values():
        if tombstone.deletion_timestamp > cutoff_ms:
            keep(tombstone.path, tombstone.deletion_vector)
    return needed


def _below(storage: Storage, path: str) -> set[str]:
    """The paths below the table's folder that a path of the log, which may be a whole one, may mean."""
    if not is_elsewhere(path):
        return {path}
    below = path_below(storage, path)
    found = {below} if below is not None else set()
    if storage.local_path("") is not None:  # the same folder may be called otherwise, by links
        whole = re.sub("^file:/+", "/", path)
        found.add(os.path.relpath(os.path.realpath(whole), os.path.realpath(storage.url)))
    return found


def _is_inside(storage: Storage, path: str) -> bool:
    """Whether a file that was found below the table's folder lies there, and not behind a link."""
    here, root = storage.local_path(path), storage.local_path("")
    if here is None or root is None:
        return True
    folder, top = os.path.realpath(os.path.dirname(here)), os.path.realpath(root)
    return folder == top or folder.startswith(top + os.sep)


def _lies_in(path: str, folders: set[str]) -> bool:
    """Whether a file belongs to another table, in a folder below this one's."""
    return any(path.startswith(folder) for folder in folders)


def _may_go(entry: Entry, needed: set[str], cutoff_ms: int) -> bool:
    parts = entry.path.split("/")
    hidden = any(p.startswith((".", "_")) and "=" not in p for p in parts)
    # Below these folders even hidden names are ours: the feed, and what a Spark job that was killed has left.
    ours = parts[0] == "_change_data" or _SPARK_JOB.match(parts[0])
    if hidden and not ours:
        return False  # the log, and what other tools keep beside the data
    return entry.path not in needed and entry.modified_ms <= cutoff_ms
