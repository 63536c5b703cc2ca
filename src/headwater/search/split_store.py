"""The splits of one index: where they lie, and the copies that this machine has unpacked.

In the lake a split is two immutable files in the index's folder, ``<name>.split`` and ``<name>.cover``. The library
needs the files of a segment on a local disk, so a machine unpacks a split once, into a cache that all its processes
share::

    <spill folder>/headwater-splits/<name>/…      complete, because it was put there by one rename
    <spill folder>/headwater-splits/<name>/.used  its time of change says when it was last opened

The cache has a limit in bytes (setting ``search_cache_bytes``): the splits that were not used for the longest time go
first. Whoever has one open keeps it, by links of its own to the files (`lend`). Splits that are not here are fetched
several at a time, at most ``search_loads`` of them in a process. One that is missing or is not what was written is
reported, and its rows are searched without it. What is stored is compared with its checksums when it is unpacked; the
copies in the cache only when the library fails on one, or cannot open it.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import lru_cache
from typing import TypeVar

from headwater.base import events, faults, settings
from headwater.base.errors import CorruptionError, NotFoundError
from headwater.base.scratch import own_folder, scratch_parent
from headwater.base.storage import Storage, now_ms
from headwater.search.assembled import link
from headwater.search.cover import Cover
from headwater.search.split_builder import BuiltSplit, packed
from headwater.search.split_file import check_folder, unpack

__all__ = ["SplitStore", "cache_folder", "discarded", "evict", "forget", "forget_corrupt", "keep", "lend"]

_T = TypeVar("_T")
_TRIES = 5
_YOUNG_MS = 3_600_000
_SPLIT, _COVER, _DAMAGED, _USED = ".split", ".cover", ".damaged", ".used"
_loads = threading.Condition()
_loading = 0
_covers: dict[tuple[str, str], Cover] = {}
_guard = threading.Lock()
_MOST_COVERS = 10_000


def cache_folder() -> str:
    """Where this machine unpacks splits."""
    folder = os.path.join(scratch_parent() or tempfile.gettempdir(), "headwater-splits")
    os.makedirs(folder, exist_ok=True)
    return folder


class SplitStore:
    """The splits of one index.

    Parameters
    ----------
    root : Storage
        of the lake
    path : str
        the index's folder below it
    """

    def __init__(self, root: Storage, path: str) -> None:
        self.root, self.path = root, path

    def __reduce__(self) -> tuple[object, ...]:
        return SplitStore, (self.root, self.path)

    # -- writing ---------------------------------------------------------------------------------------------------

    def add(self, built: BuiltSplit) -> Cover:
        """Put a split that was built where readers find it, and keep it unpacked here; gives its cover."""
        with tempfile.TemporaryDirectory(prefix="headwater-pack-", dir=own_folder()) as folder:
            file = os.path.join(folder, "split")
            cover = packed(built, file)
            faults.point("search.split.before_write", built.name)
            with open(file, "rb") as source, self.root.open_output(self._file(built.name, _SPLIT)) as to:
                shutil.copyfileobj(source, to, 1 << 20)
        faults.point("search.cover.before_write", built.name)
        self.root.put(self._file(built.name, _COVER), cover.to_bytes())
        keep(built)
        return cover

    def delete(self, names: Iterable[str]) -> None:
        """Delete splits that no commit names any more."""
        for name in names:
            faults.point("search.split.before_delete", name)
            for ending in (_COVER, _SPLIT, _DAMAGED):
                self.root.delete(self._file(name, ending))
            with _guard:
                _covers.pop((self.url, name), None)

    def orphans(self, named: Collection[str], *, young_ms: int | None = None) -> list[str]:
        """Splits that no commit names; in object storage only old ones,
        since another machine may be about to name one.
        """
        old = None if self.root.local_path("") is not None and young_ms is None else now_ms() - (young_ms or _YOUNG_MS)
        found = set()
        for entry in self.root.list(f"{self.path}/"):
            name, dot, ending = entry.path.rpartition("/")[2].partition(".")
            ours = dot and f".{ending}" in (_SPLIT, _COVER, _DAMAGED) and name not in named
            if ours and (old is None or entry.modified_ms < old):
                found.add(name)
        return sorted(found)

    def mark_damaged(self, name: str) -> None:
        """Note beside a split that it cannot be used, so that the next refresh, wherever it runs, replaces it."""
        self.root.put(self._file(name, _DAMAGED), b"")

    def usable(self) -> set[str]:
        """The names of the splits that are there and have not been found damaged."""
        found: dict[str, set[str]] = {}
        for entry in self.root.list(f"{self.path}/"):
            name, dot, ending = entry.path.rpartition("/")[2].partition(".")
            found.setdefault(name, set()).add(dot + ending)
        return {name for name, endings in found.items() if endings == {_SPLIT, _COVER}}

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where they lie."""
        return f"{self.root.url}/{self.path}"

    def cover(self, name: str) -> Cover:
        """The cover of a split."""
        with _guard:
            known = _covers.get((self.url, name))
        if known is not None:
            return known
        path = self._file(name, _COVER)
        found = Cover.from_bytes(self.root.get(path), path, self.root.url)
        with _guard:
            if len(_covers) >= _MOST_COVERS:
                _covers.clear()
            _covers[self.url, name] = found
        return found

    def covers(self, names: Iterable[str]) -> dict[str, Cover]:
        """The covers of several splits, fetched a few at a time."""
        listed = list(names)
        return dict(zip(listed, _several(self.cover, listed), strict=True))

    def fetch(self, wanted: Callable[[str], bool], names: Iterable[str]) -> None:
        """Have covers, and those splits that are ``wanted``, here; what cannot be had is found out when it is used."""

        def load(name: str) -> None:
            with suppress(NotFoundError, CorruptionError):
                self.cover(name)
                if wanted(name):
                    self.folder(name)

        absent = [name for name in names if not self.is_here(name) or (self.url, name) not in _covers]
        if len(absent) > 1:
            _several(load, absent)

    def is_here(self, name: str) -> bool:
        """Whether this machine has a split unpacked."""
        return os.path.exists(os.path.join(cache_folder(), name, _USED))

    def folder(self, name: str) -> str:
        """The folder of a split, unpacked here if it was not; it may be evicted at any time."""
        to = os.path.join(cache_folder(), name)
        if not _touch(to):
            with _one_load():
                if not _touch(to):
                    self._unpack(name, to)
            evict(spare=to)
        return to

    def lend(self, name: str, to: str) -> None:
        """Link the files of a split into a new folder, where they stay whatever becomes of the cache."""
        for _ in range(_TRIES):
            if lend(self.folder(name), to):
                return
        raise CorruptionError.state_file(
            self._file(name, _SPLIT), "it vanishes as soon as it is unpacked", self.root.url
        )

    def _unpack(self, name: str, to: str) -> None:
        path = self._file(name, _SPLIT)
        staged = f"{to}.{uuid.uuid4().hex}.tmp"
        os.makedirs(staged)
        try:
            local = self.root.local_path(path)
            source = local if local is not None and os.path.exists(local) else io.BytesIO(self.root.get(path))
            unpack(source, staged, path, self.root.url)
            _put(staged, to)
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def _file(self, name: str, ending: str) -> str:
        return f"{self.path}/{name}{ending}"


@contextmanager
def _one_load() -> Iterator[None]:
    """Wait until fewer splits than ``search_loads`` are being fetched in this process."""
    global _loading
    most = settings.current().search_loads
    with _loads:
        _loads.wait_for(lambda: _loading < most)
        _loading += 1
    try:
        yield
    finally:
        with _loads:
            _loading -= 1
            _loads.notify_all()


def _several(fetch: Callable[[str], _T], names: Sequence[str]) -> list[_T]:
    """Fetch by several threads, which have the settings of the caller."""
    if len(names) < 2:
        return [fetch(name) for name in names]
    most = min(len(names), settings.current().search_loads)
    with ThreadPoolExecutor(most, thread_name_prefix="headwater-splits") as pool:
        return [task.result() for task in [pool.submit(copy_context().run, fetch, name) for name in names]]


def keep(built: BuiltSplit) -> str:
    """Move the folder of a split that was built here into the cache."""
    to = os.path.join(cache_folder(), built.name)
    _put(built.folder, to)
    evict(spare=to)
    return to


def lend(folder: str, to: str) -> bool:
    """Link the files of a folder of the cache into a new one; False if it was evicted meanwhile."""
    os.makedirs(to)
    try:
        for name in os.listdir(folder):
            if name.startswith("."):
                continue
            link(os.path.join(folder, name), os.path.join(to, name))
    except FileNotFoundError:
        shutil.rmtree(to, ignore_errors=True)
        return False
    return True


def forget(name: str) -> None:
    """Delete what the cache has of a split."""
    folder = os.path.join(cache_folder(), name)
    aside = f"{folder}.{uuid.uuid4().hex}.tmp"
    with suppress(OSError):
        os.rename(folder, aside)
        shutil.rmtree(aside, ignore_errors=True)


def forget_corrupt(lent: Mapping[str, str]) -> list[str]:
    """Of splits that were lent to folders, delete from the cache those that are not what was unpacked;
    gives their names.
    """
    found = []
    for name, folder in lent.items():
        try:
            check_folder(folder, "the cache")
        except CorruptionError as e:
            forget(name)
            events.notice(f"the copy of a split that this machine has is corrupt, and is fetched again: {e.message}")
            found.append(name)
    return found


def _put(staged: str, to: str) -> None:
    with open(os.path.join(staged, _USED), "w", encoding="utf-8"):
        pass
    try:
        os.rename(staged, to)
    except OSError:  # another file system, or another process was quicker
        if os.path.isdir(to):
            return
        aside = f"{to}.{uuid.uuid4().hex}.tmp"
        shutil.copytree(staged, aside)
        try:
            os.rename(aside, to)
        except OSError:
            shutil.rmtree(aside, ignore_errors=True)
            if not os.path.isdir(to):
                raise
        shutil.rmtree(staged, ignore_errors=True)


def _touch(folder: str) -> bool:
    """Note that a split is used; False if it is not here."""
    try:
        os.utime(os.path.join(folder, _USED))
    except OSError:
        return False
    return True


def evict(limit: int | None = None, *, spare: str | None = None) -> int:
    """Delete the splits of the cache that were not used for the longest time, down to the limit; gives what is left.

    The folder ``spare`` was just unpacked for somebody, and stays.
    """
    most = settings.current().search_cache_bytes if limit is None else limit
    parent = cache_folder()
    found = []
    for entry in os.scandir(parent):
        with suppress(OSError):
            if entry.name.endswith(".tmp"):
                if time.time() - entry.stat().st_mtime > 3600:  # left by a process that ended
                    shutil.rmtree(entry.path, ignore_errors=True)
                continue
            found.append((os.stat(os.path.join(entry.path, _USED)).st_mtime, entry.path, _size(entry.path)))
    total = sum(size for _, _, size in found)
    for _, path, size in sorted(found):
        if total <= most:
            break
        if path == spare:
            continue
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        with suppress(OSError):
            os.rename(path, aside)
            shutil.rmtree(aside, ignore_errors=True)
            total -= size
    return total


@lru_cache(maxsize=10_000)
def _size(folder: str) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))


@contextmanager
def discarded(built: BuiltSplit) -> Iterator[BuiltSplit]:
    """A split that is deleted afterwards, unless it was kept."""
    try:
        yield built
    finally:
        shutil.rmtree(built.folder, ignore_errors=True)
