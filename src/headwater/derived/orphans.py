"""Orphans: files that a refresh wrote and never committed, because its process ended.

An artefact that publishes a Delta table calls its own files ``<prefix>-<version>-…``, by the version of the table that
they were written for; and on one machine only the process that holds the lock of the artefact's state writes them. So a
file of a version that has not been published is an orphan, and one of an older version is if the log does not know it.
This is looked at once in the life of a process, again after an attempt that failed, and where another process was at
it last and has ended. In object storage other
machines may be writing just now; there, files younger than a day are left alone.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from headwater.base import faults
from headwater.base.errors import NotFoundError
from headwater.base.storage import Storage, now_ms
from headwater.lake import log, partitions
from headwater.lake.actions import AddFile, RemoveFile
from headwater.lake.snapshot import Snapshot

__all__ = ["sweep"]

_YOUNG_MS = 24 * 3_600_000
_FEED = "_change_data/"


def sweep(base: Snapshot, published: int, *, prefix: str, vectors_folder: str) -> list[str]:
    """Delete the files of an artefact's table that were never committed, and give their paths.

    ``prefix`` begins the names of its data files, and its deletion vectors lie in ``vectors_folder``.
    """
    own_file = re.compile(rf"(?:{_FEED})?{prefix}-(\d+)-[^/]*")
    own_vector = re.compile(rf"{vectors_folder}/deletion_vector_[^/]*")
    storage = base.storage
    local = storage.local_path("")
    before = now_ms() - _YOUNG_MS if local is None else None
    files: dict[str, int] = {}
    vectors: list[str] = []
    for entry in storage.list(""):
        if before is not None and entry.modified_ms >= before:
            continue
        if own := own_file.fullmatch(entry.path):
            files[entry.path] = int(own[1])
        elif own_vector.fullmatch(entry.path):
            vectors.append(entry.path)
    orphans = [path for path, version in files.items() if version > published]
    old = [path for path, version in files.items() if version <= published and not path.startswith(_FEED)]
    if old or vectors:
        known_files, known_vectors = _known(storage)
        orphans += [p for p in vectors if p not in known_vectors]
        orphans += [p for p in old if p not in known_files and not _is_named(storage, files[p], published, p)]
    for path in orphans:
        faults.point("derived.sweep.before_delete", path)
        storage.delete(path)
    if local is not None:
        _sweep_temporary(local, prefix, vectors_folder)
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


def _sweep_temporary(folder: str, prefix: str, vectors_folder: str) -> None:
    """Delete what a process left under the temporary names of its own files."""
    for place in ("", _FEED, vectors_folder):
        with suppress(FileNotFoundError):
            for name in os.listdir(os.path.join(folder, place)):
                ours = name.startswith((f".{prefix}-", ".deletion_vector_")) and name.endswith(".tmp")
                if ours and (place == vectors_folder or name.startswith(f".{prefix}-")):
                    with suppress(FileNotFoundError):
                        os.unlink(os.path.join(folder, place, name))
