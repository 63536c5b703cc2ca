"""Spilling: state that is larger than memory lies in files, and is read where it lies.

All runs in memory of the process share one budget, the setting ``state_memory_bytes``. Whoever adds a run looks at it:
when it is exceeded, the largest runs are written to files by the thread that merges, and mapped; and a merge whose
result would exceed it goes straight into a file. Mapped pages belong to the system, which reads them when they are
asked for, and drops them when memory is short. The small runs of the memtable are not counted: they are at most some
33,000 rows a trace.

Files go to the store that a trace belongs to, so that the next checkpoint finds them there. A trace without a store has
files that have no name: they are unlinked as soon as they are mapped, so they go with the process, however that ends.

Only its owner puts another run in the place of one, because kernels read runs by address: a run is written by another
thread, but changes places at the next commit of its trace. If the disk is full, the runs stay in memory, and there is
a notice. An owner that adds faster than the disk can take waits as soon as twice the budget is used.

Merging can wait, and somebody who waits for a refresh cannot. So within `put_off` nothing is begun, for at most a
quarter of a second, and unless somebody needs it (`hurry`).
"""

from __future__ import annotations

import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from headwater.base import events, faults, settings
from headwater.base.pools import pool
from headwater.base.storage.local import translated
from headwater.incremental.run import Bound, Run, merged
from headwater.incremental.run_file import RunFile, write_run
from headwater.incremental.run_header import Header
from headwater.incremental.run_merge import merge_to_file
from headwater.incremental.sweep import swept, swept_pieces
from headwater.spark.machine import memory_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.incremental.layout import Layout
    from headwater.incremental.sweep import Gone

__all__ = [
    "background",
    "budget_bytes",
    "has_room",
    "hurry",
    "merged_somewhere",
    "put_off",
    "relieve",
    "spilled",
    "swept_somewhere",
    "tell",
    "used_bytes",
]

_SMALLEST = 1 << 18
_SHARE = 4
_LONGEST_SECONDS = 0.25


class Spillable(Protocol):
    """Something that holds large runs and can have them written to files: a spine."""

    runs: list[Run]

    def is_busy(self, run: Run) -> bool:
        """Is a run being merged or spilled?"""

    def spill(self, run: Run) -> None:
        """Have a run written to a file."""

    def wait(self) -> None:
        """Wait for what is being done now."""


class RunWriter(Protocol):
    """Where runs are written to files with names: a store."""

    def write(self, run: Run, *, sync: bool = True) -> Run:
        """The same run, in a file."""

    def merge(self, left: Run, right: Run, bound: Bound | None) -> Run:
        """The sum of two runs, in a file."""


def background() -> ThreadPoolExecutor:
    """The one thread of this process that merges and spills."""
    return pool("merge")


class _Gate:
    """Whether what is asked of the background may begin."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self._guard = threading.Lock()
        self._closed_by = 0

    def close(self) -> None:
        with self._guard:
            self._closed_by += 1
            self.open.clear()

    def release(self) -> None:
        with self._guard:
            self._closed_by -= 1
            if not self._closed_by:
                self.open.set()


@cache
def _gate(_pid: int) -> _Gate:
    return _Gate()


@contextmanager
def put_off() -> Iterator[None]:
    """Let merges and spills wait for the end of the block."""
    gate = _gate(os.getpid())
    gate.close()
    try:
        yield
    finally:
        gate.release()


def hurry() -> None:
    """Somebody waits for what is put off: let it begin."""
    _gate(os.getpid()).open.set()


def _begin() -> None:
    _gate(os.getpid()).open.wait(_LONGEST_SECONDS)


class _Spines:
    """The spines of this process that have runs."""

    def __init__(self) -> None:
        self._all: WeakSet[Spillable] = WeakSet()
        self._guard = threading.Lock()
        self.told = False

    def add(self, spine: Spillable) -> None:
        with self._guard:
            self._all.add(spine)

    def runs(self) -> dict[Run, Spillable]:
        """The runs in memory; one that several traces have is listed once."""
        with self._guard:
            spines = list(self._all)
        return {run: spine for spine in spines for run in spine.runs if not run.mapped}


@cache
def _spines(_pid: int) -> _Spines:
    return _Spines()


@cache
def _machine() -> int:
    return memory_bytes()


def budget_bytes() -> int:
    """How much memory runs may take in this process."""
    return settings.current().state_memory_bytes or _machine() // _SHARE


def used_bytes() -> int:
    """How much memory the large runs of this process take."""
    return sum(run.nbytes for run in _spines(os.getpid()).runs())


def has_room(nbytes: int) -> bool:
    """May so much more be held in memory?"""
    return used_bytes() + nbytes <= budget_bytes()


def relieve(mine: Spillable) -> None:
    """Have the largest runs written to files until the rest fits, and wait if that is far from being so."""
    known = _spines(os.getpid())
    known.add(mine)
    budget = budget_bytes()
    held = known.runs()
    used = sum(run.nbytes for run in held)
    if used <= budget:
        return
    staying = used
    for run, spine in sorted(held.items(), key=lambda item: item[0].nbytes, reverse=True):
        if staying <= budget * 3 // 4 or run.nbytes < _SMALLEST:
            break
        staying -= run.nbytes
        if not spine.is_busy(run):
            spine.spill(run)
    if used > 2 * budget:
        mine.wait()


def spill_folder() -> str:
    """Where runs without a store go."""
    return str(settings.current().spill_dir or tempfile.gettempdir())


def spilled(run: Run, store: RunWriter | None, folder: str) -> Run:
    """The same run, mapped from a file."""
    _begin()
    faults.point("state.spill.begin")
    if run.file is not None and run.file.header.version == 1:  # which can be mapped
        return run.file.open(run.layout)
    if store is not None:
        return store.write(run, sync=False)
    return _nameless(run.layout, lambda fd: write_run(run, fd), folder)


def merged_somewhere(left: Run, right: Run, bound: Bound | None, store: RunWriter | None, folder: str | None) -> Run:
    """The sum of two runs: in memory, or in a file if a folder is given."""
    _begin()
    faults.point("state.merge.begin")
    if folder is None:
        return merged([left, right], bound)
    if store is not None:
        return store.merge(left, right, bound)
    return _nameless(left.layout, lambda fd: merge_to_file(left, right, bound, fd), folder)


def swept_somewhere(runs: Sequence[Run], gone: Gone, store: RunWriter | None, folder: str | None) -> list[Run]:
    """The sum of runs without what may go: in memory, or in several files if a folder is given."""
    _begin()
    if folder is None:
        return swept(runs, gone)
    return [spilled(run, store, folder) for run in swept_pieces(runs, gone)]


def _nameless(layout: Layout, write: Callable[[int], Header], folder: str) -> Run:
    with translated(folder, "a run that is spilled"):
        fd, path = tempfile.mkstemp(prefix="headwater-state-", suffix=".run", dir=folder)
        try:
            run = RunFile(path, write(fd)).open(layout)
        finally:
            os.close(fd)
            os.unlink(path)
    run.file = None
    return run


def tell(error: BaseException) -> None:
    """Say once that state cannot be spilled."""
    known = _spines(os.getpid())
    if not known.told:
        known.told = True
        events.notice(f"state stays in memory because its files cannot be written: {error}")
