"""Orphans: files that a refresh wrote and never committed, because its process ended.

A view's own files are called ``view-<version>-…``, by the version of its table that they were written for; and on one machine only the process
that holds the lock of the view's state writes them. So a file of a version that has not been published is an orphan, and one of an older
version is if the log does not know it. This is looked at once in the life of a process, and again after an attempt that failed. In object
storage other machines may be writing just now; there, files younger than a day are let be.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from headwater.base import faults
from headwater.base.errors import NotFoundError
from headwater.base.storage import Storage, now_ms
from headwater.incremental.views.publishing import PREFIX, VECTORS
from headwater.lake import log, partitions
from headwater.lake.actions import AddFile, RemoveFile
from headwater.lake.snapshot import Snapshot

__all__ = ["sweep"]

_YOUNG_MS = 24 * 3_600_000
_FEED = "_change_data/"
_OWN = re.compile(rf"(?:{_FEED})?{PREFIX}-(\d+)-[^/]*")
_VECTOR = re.compile(rf"{VECTORS}/deletion_vector_[^/]*")


def sweep(base: Snapshot, published: int) -> list[str]:
    """Delete the files of a view's table that were never committed, and give their paths."""
    storage = base.storage
    local = storage.local_path("")
    before = now_ms() - _YOUNG_MS if local is None else None
    files: dict[str, int] = {}
    vectors: list[str] = []
    for entry in storage.list(""):
        if before is not None and entry.modified_ms >= before:
            continue
        if own := _OWN.fullmatch(entry.path):
            files[entry.path] = int(own[1])
        elif _VECTOR.fullmatch(entry.path):
            vectors.append(entry.path)
    orphans = [path for path, version in files.items() if version > published]
    old = [path for path, version in files.items() if version <= published and not path.startswith(_FEED)]
    if old or vectors:
        known_files, known_vectors = _known(storage)
        orphans += [p for p in vectors if p not in known_vectors]
        orphans += [p for p in old if p not in known_files and not _is_named(storage, files[p], published, p)]
    for path in orphans:
        faults.point("view.sweep.before_delete", path)
        storage.delete(path)
    if local is not None:
        _sweep_temporary(local)
    return orphans


def _known(storage: Storage) -> tuple[set[str], set[str]]:
    """The files and the vectors that are in use, or went within the retention."""
    state = log.load(storage, tombstones=True)
    files, vectors = set(), set()
    there: list[AddFile | RemoveFile] = [*state.files.values(), *(state.tombstones or {}).values()]
    for file in there:
        files.add(partitions.decode_path(file.path))
        if file.deletion_vector is not None and file.deletion_vector.path is not None:
            vectors.add(file.deletion_vector.path)
    return files, vectors


def _is_named(storage: Storage, version: int, published: int, path: str) -> bool:
    """Whether a commit added a file that was written for a version; True where that cannot be told any more.

    Files that were put together are committed at a later version, if there were refreshes meanwhile.
    """
    for number in range(version, published + 1):
        try:
            commit = log.read_commit(storage, number, 0)
        except NotFoundError:
            return True
        if any(partitions.decode_path(f.path) == path for f in commit.adds):
            return True
    return False


def _sweep_temporary(folder: str) -> None:
    """Delete what a process left under the temporary names of its own files."""
    for place in ("", _FEED, VECTORS):
        with suppress(FileNotFoundError):
            for name in os.listdir(os.path.join(folder, place)):
                ours = name.startswith((f".{PREFIX}-", ".deletion_vector_")) and name.endswith(".tmp")
                if ours and (place == VECTORS or name.startswith(f".{PREFIX}-")):
                    with suppress(FileNotFoundError):
                        os.unlink(os.path.join(folder, place, name))
