"""The spine: the large runs of a trace, merged in the background.

Two runs of the same class of size, powers of two, are merged into one of the next: a row is copied once while its run
doubles, and there are few runs. One thread for the process merges, in kernels that do not hold the GIL; steps go on
meanwhile with the old runs, and take the new one at their next commit. A sweep (`headwater.incremental.sweep`) is a
merge of all runs that leaves out what a rule says may go. A spine that grows faster than it is merged makes its owner
wait (back-pressure). Where memory is short, runs are written to files in the same way (`headwater.incremental.spill`).

What goes wrong in the background does not disturb a commit. If storage fails, the runs stay as they are, and the next
run that is added tries again. Anything else, such as a damaged file, is the `failure` of the spine, which the next step
of the trace raises.
"""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from headwater.incremental import spill
from headwater.incremental.run import Bound, Run
from headwater.incremental.spill import RunWriter

if TYPE_CHECKING:
    from headwater.incremental.sweep import Gone

__all__ = ["Spine"]

_MOST_RUNS = 12
_TOO_MANY = 24


def _class(run: Run) -> int:
    return len(run.hashes).bit_length()


def _merged(large: Run, small: Run, bound: Bound | None, store: RunWriter | None, folder: str | None) -> list[Run]:
    return [spill.merged_somewhere(large, small, bound, store, folder)]


class Spine:
    """Runs of more than a memtable's size, largest first."""

    __slots__ = ("__weakref__", "_bound", "_gone", "_merging", "_spilling", "failure", "merged_rows", "runs", "store")

    def __init__(self, store: RunWriter | None = None) -> None:
        self.runs: list[Run] = []
        self._merging: tuple[list[Run], Future[list[Run]]] | None = None
        self._spilling: list[tuple[Run, Future[Run]]] = []
        self.failure: BaseException | None = None
        self.merged_rows = 0
        self.store = store
        self._bound: Bound | None = None
        self._gone: Gone | None = None

    def push(self, run: Run, bound: Bound | None) -> None:
        """Take another run, and see to merging."""
        self.runs = sorted([*self.runs, run], key=len, reverse=True)
        self.collect()
        self._bound = bound
        self._begin()
        while len(self.runs) > _TOO_MANY and self._merging is not None:
            spill.hurry()
            wait([self._merging[1]])
            self.collect()
        spill.relieve(self)

    def sweep(self, gone: Gone, more: list[Run]) -> None:
        """Take more runs, and have all that are there merged without what may go,
        as soon as nothing else is under way.
        """
        self.runs = sorted([*self.runs, *more], key=len, reverse=True)
        self.collect()
        self._gone = gone
        self._begin()

    def collect(self) -> bool:
        """Put a finished merge in the place of its runs; True if there was one."""
        changed = bool(self._spilling) and self._collect_spilled()
        if self._merging is None and self._gone is not None:
            self._begin()
        if self._merging is None or not self._merging[1].done():
            return changed
        old, future = self._merging
        self._merging = None
        if not self._succeeded(future):
            return changed
        new = [run for run in future.result() if len(run)]
        self.merged_rows += sum(map(len, old))
        runs = [r for r in self.runs if not any(r is o for o in old)]
        self.runs = sorted([*runs, *new], key=len, reverse=True)
        self._begin()
        return True

    def _collect_spilled(self) -> bool:
        changed = False
        for item in [item for item in self._spilling if item[1].done()]:
            self._spilling.remove(item)
            old, future = item
            if self._succeeded(future) and any(run is old for run in self.runs):
                self.runs = [future.result() if run is old else run for run in self.runs]
                changed = True
        return changed

    def _succeeded(self, future: Future[Any]) -> bool:
        error = future.exception()
        if isinstance(error, OSError):  # a StorageError, or one that nobody translated
            spill.tell(error)
        elif error is not None:
            self.failure = error
        return error is None

    def _begin(self) -> None:
        if self._merging is not None:
            return
        if self._gone is not None and not self._spilling:
            gone, self._gone = self._gone, None
            runs = list(self.runs)
            if runs:
                folder = None if spill.has_room(sum(r.nbytes for r in runs)) else spill.spill_folder()
                job = spill.background().submit(spill.swept_somewhere, runs, gone, self.store, folder)
                self._merging = (runs, job)
            return
        # The smallest pair first: it is cheap, and makes room for the next.
        for small, large in zip(reversed(self.runs), reversed(self.runs[:-1]), strict=False):
            if _class(large) == _class(small) or len(self.runs) > _MOST_RUNS:
                if self._spilling and (self.is_busy(small) or self.is_busy(large)):
                    continue
                folder = None if spill.has_room(small.nbytes + large.nbytes) else spill.spill_folder()
                job = spill.background().submit(_merged, large, small, self._bound, self.store, folder)
                self._merging = ([large, small], job)
                return

    def compacted(self, more: list[Run], bound: Bound | None) -> list[Run]:
        """The sum of all runs and of some more as one run, or none: now, in the caller's thread. The spine stays as it
        is.

        Where memory is short the sum is written to a file.
        """
        self.settle()
        runs = sorted([*self.runs, *more], key=len, reverse=True)
        while len(runs) > 1:
            small, large = runs.pop(), runs.pop()
            folder = None if spill.has_room(small.nbytes + large.nbytes) else spill.spill_folder()
            run = spill.merged_somewhere(large, small, bound, self.store, folder)
            if len(run):
                runs = sorted([*runs, run], key=len, reverse=True)
        for run in runs:
            run.origin.parts = ()  # it is to have a file of its own, so that those of its parts can go
        return runs

    def is_busy(self, run: Run) -> bool:
        """Is a run being merged or spilled?"""
        merging = self._merging
        if merging is not None and any(each is run for each in merging[0]):
            return True
        return any(each is run for each, _ in self._spilling)

    def spill(self, run: Run) -> None:
        """Have a run written to a file; `collect` puts the mapped one in its place. Any thread may ask for it."""
        future = spill.background().submit(spill.spilled, run, self.store, spill.spill_folder())
        self._spilling.append((run, future))

    def wait(self) -> None:
        """Wait for what is being done now."""
        spill.hurry()
        under_way: list[Future[Any]] = [future for _, future in self._spilling]
        wait([*under_way, *([self._merging[1]] if self._merging is not None else [])])
        self.collect()

    def settle(self) -> None:
        """Wait until nothing is left to merge."""
        while self._merging is not None or self._spilling:
            self.wait()

    def __len__(self) -> int:
        return sum(len(r) for r in self.runs)
