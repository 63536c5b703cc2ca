"""Traces: the sum of all changes so far, ready to be asked by key.

A trace is some small runs that are merged as changes come in (the memtable), and a **spine** of large ones that a
thread in the background merges. Small levels have runs of at most 512 and 4,096 rows: a change goes into the level of
its size, and eight runs of a level become one. What outgrows the last joins the spine, where runs of similar size are
merged, so that there are logarithmically many, and a row is copied logarithmically often. Adding 100 rows costs the
same at a thousand rows of state and at ten million.

A step first *stages* what it wants to add, so that a step that fails changes nothing: readers may see the state with or
without what is staged. `commit` makes it part of the trace, and cannot fail for reasons of data.

Rows that nobody looks at again are let go in one of two ways. Those below a bound, which only rises, are dropped by
merges (`forget`). Where it takes all rows of a key to know, everything is merged and looked at (`sweep`), in the
background, and at most once while the trace doubles.

Since runs do not change, a `snapshot` is a list of runs, and a `fork` is a trace that starts with them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.incremental import sorting
from headwater.incremental.run import Bound, Run, addresses, merged
from headwater.incremental.spine import Spine
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels import probe as kernels
from headwater.kernels.consolidate import weight_bound_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    import numpy.typing as npt

    from headwater.incremental.layout import Layout
    from headwater.incremental.slots import Slots
    from headwater.incremental.sweep import Gone

__all__ = ["Matches", "Trace"]

_REACH = 1 << 62
_LEVELS = (512, 4_096)
_RUNS_A_LEVEL = 8
_MOST_LOOSE = 1_024
_WORTH_SWEEPING = 4_096
_NOTHING: Bound = (0, int(np.iinfo(np.int64).min))
"""A bound that no row is below. What it says, in manifests too, is that rows were let go in another way."""


@dataclass(slots=True)
class Matches:
    """Rows of a trace, and for each the position of the key that it was found by."""

    rows: ZSet
    which: npt.NDArray[np.int64]


class Trace:
    """The integral of a stream of Z-sets of one layout."""

    __slots__ = (
        "_known",
        "_levels",
        "_lines",
        "_loose",
        "_loose_reach",
        "_loose_rows",
        "_owners",
        "_reach",
        "_sorting",
        "_staged",
        "_staged_loose",
        "arrived",
        "bound",
        "layout",
        "slots",
        "spine",
    )

    def __init__(self, layout: Layout, runs: list[Run] | None = None) -> None:
        self.layout = layout
        self._levels: list[list[Run]] = [[] for _ in _LEVELS]
        self.spine = Spine()
        self._staged: Run | None = None
        self.bound: Bound | None = None
        self._lines: npt.NDArray[np.int64] | None = None
        self._owners: tuple[Run, ...] | None = None
        self._known = 0
        self._reach = 0
        self._loose: list[ZSet] = []
        self._loose_rows = 0
        self._loose_reach = 0
        self._staged_loose: tuple[ZSet, int] | None = None
        self._sorting: Future[Run] | None = None
        self.arrived = 0
        """How many rows came since the last sweep."""
        self.slots: Slots | None = None
        """What is kept beside it, and is drained before anybody else looks."""
        for run in runs or ():
            self._add(run)

    # -- changing it -----------------------------------------------------------------------------------------------

    def stage(self, delta: ZSet) -> Run | None:
        """Prepare to add a change; until `commit` only readers that ask for it see it."""
        self.check()
        if not len(delta.rows):
            return None
        run = Run.of(delta)
        return self.stage_run(run) if len(run.hashes) else None

    def stage_run(self, run: Run) -> Run:
        """Prepare to add a run, which is not empty."""
        assert self._staged is None, "a step stages one change for a trace"
        if self.slots is not None:
            self.drain()
            self.slots.clear()
        if self._reach + run.most > _REACH:
            self._try(run)
        self._staged = run
        return run

    @property
    def staged(self) -> Run | None:
        """The run that is staged."""
        return self._staged

    def stage_loose(self, delta: ZSet) -> None:
        """Prepare to add a change that perhaps nobody asks for in this step.

        A small one is sorted when somebody does, or together with others; a large one meanwhile, on another thread.
        """
        self.check()
        assert self._staged is None and self._staged_loose is None, "a step stages one change for a trace"
        n = len(delta.rows)
        most = n * (weight_bound_of(delta.rows, self.layout.payload) + 1)
        if _MOST_LOOSE < n < sorting.WORTH_A_THREAD or self._reach + most > _REACH:
            self.stage(delta)
            return
        self._staged_loose = (delta, most)
        if n > _MOST_LOOSE:
            self._sorting = sorting.run_of(delta)

    def _sort_staged(self) -> None:
        """Make a run of what was staged loose."""
        loose, self._staged_loose = self._staged_loose, None
        under_way, self._sorting = self._sorting, None
        if loose is not None:
            run = under_way.result() if under_way is not None else Run.of(loose[0])
            self._staged = run if len(run.hashes) else None

    def drain(self) -> None:
        """Take over what is loose, and what is in the slots beside it."""
        if self._loose:
            loose, self._loose = self._loose, []
            self._reach -= self._loose_reach
            self._loose_rows = self._loose_reach = 0
            hashes = np.concatenate([z.hashes for z in loose])
            whole = concatenate(loose, self.layout)
            run = Run.of(ZSet(self.layout, whole.rows, whole.owners, hashes=hashes))
            if len(run.hashes):
                self._add(run)
        if self.slots is not None and self.slots.differ:
            run = Run.of(self.slots.drained())
            if len(run.hashes):
                self._add(run)

    def check(self) -> None:
        """Raise what went wrong in the background."""
        if self.spine.failure is not None:
            raise self.spine.failure

    def _try(self, run: Run) -> None:
        """See whether the weights of a run can be added, which may have become large; raises if not, and changes
        nothing.

        The sum of the runs' largest weights is a bound of all weights there can be, so that below it nothing needs to
        be looked at.
        """
        if sum(r.weight_bound() for r in (*self.runs, run)) > _REACH:
            self.spine.settle()
            if self.runs:
                whole = functools.reduce(lambda a, b: merged([a, b]), self.runs)
                merged([whole, run])
                self.load([whole])
        self._reach = sum(r.weight_bound() for r in self.runs)

    def commit(self) -> None:
        """Make what is staged a part of the trace."""
        if self._sorting is not None:
            self._sort_staged()
        staged, self._staged = self._staged, None
        if staged is not None:
            self._add(staged)
        elif self._staged_loose is not None:
            delta, most = self._staged_loose
            self._staged_loose = None
            self._loose.append(delta)
            self._loose_rows += len(delta.rows)
            self._loose_reach += most
            self._reach += most
            if self._loose_rows > _LEVELS[-1]:
                self.drain()
        elif self.spine.collect():
            self._read_anew()

    def rollback(self) -> None:
        """Forget what is staged."""
        self._staged = self._staged_loose = self._sorting = None

    def add(self, delta: ZSet) -> None:
        """Stage and commit in one."""
        self.stage(delta)
        self.commit()

    def _add(self, run: Run) -> None:
        lines = self._lines
        self._read_anew()
        self._reach += run.most
        self.arrived += len(run.hashes)
        bound = None if self.bound == _NOTHING else self.bound
        for level, most in zip(self._levels, _LEVELS, strict=False):
            if len(run.hashes) > most:
                continue
            level.append(run)
            if len(level) < _RUNS_A_LEVEL:
                if lines is not None and self._known + 1 < len(lines):
                    lines[self._known] = run.line
                    self._known += 1
                    self._lines = lines
                break
            lines = None
            run = merged(level, bound)
            level.clear()
            size = len(run.hashes)
            if not size:
                break
            if size <= most:
                level.append(run)
                break
        else:
            self.spine.push(run, bound)
        if self.spine.collect():
            self._read_anew()

    def load(self, runs: list[Run]) -> None:
        """Have these runs, and nothing else."""
        assert self._staged is None and self._staged_loose is None, "a step is under way"
        self._loose = []
        self._loose_rows = self._loose_reach = 0
        self._levels = [[] for _ in _LEVELS]
        self.spine = Spine(self.spine.store)
        self._reach = 0
        self._read_anew()
        if self.slots is not None:
            self.slots.drop()
        self.arrived = -max(map(len, runs), default=0)  # the largest is what the last sweep left, if there was one
        for run in runs:
            self._add(run)

    def reaches(self, runs: Iterable[Run]) -> None:
        """Know how large the weights of runs are that were put into its spine."""
        self._reach = sum(run.most for run in runs)
        self._read_anew()

    def forget(self, bound: Bound) -> None:
        """Let rows below a bound go: from now on merges drop them."""
        assert self.bound is None or self.bound[0] != bound[0] or self.bound[1] <= bound[1], "bounds only rise"
        self.bound = bound

    @property
    def is_due(self) -> bool:
        """Did so much come since the last sweep that it pays for another, which looks at everything?"""
        return self.arrived >= _WORTH_SWEEPING and 2 * self.arrived >= len(self)

    def sweep(self, gone: Gone) -> None:
        """Let go what a rule says of everything that is there now, in the background.

        What comes while it goes on is left alone, so the rule has to be right whatever comes.
        """
        self.drain()
        small = [run for level in self._levels for run in level]
        if len(small) > 1:
            small = [run for run in [merged(small)] if len(run)]
        self._levels = [[] for _ in _LEVELS]
        self._read_anew()
        self.bound = self.bound or _NOTHING
        self.arrived = 0
        self.spine.sweep(gone, small)

    def compact(self) -> bool:
        """Merge everything into one run, in which rows that cancel out are gone;
        False if there was nothing to merge.
        """
        self.drain()
        self.spine.settle()
        small = [run for level in self._levels for run in level]
        if len(small) + len(self.spine.runs) < 2:
            return False
        arrived = self.arrived
        self.load(self.spine.compacted(small, None if self.bound == _NOTHING else self.bound))
        self.arrived = arrived
        return True

    def settle(self) -> None:
        """Wait until nothing goes on in the background."""
        self.spine.settle()
        self._read_anew()

    # -- reading it ------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> list[Run]:
        """All runs, without what is staged."""
        self.drain()
        return [r for level in self._levels for r in level] + self.spine.runs

    def table(self, *, staged: bool = False) -> npt.NDArray[np.int64]:
        """The runs as kernels read them."""
        self.drain()
        if staged and self._staged_loose is not None:
            self._sort_staged()
        lines = self._read()
        if not staged or self._staged is None:
            return lines[: self._known]
        lines[self._known] = self._staged.line
        return lines[: self._known + 1]

    def _read_anew(self) -> None:
        """The runs are others now."""
        self._lines = self._owners = None

    def _read(self) -> npt.NDArray[np.int64]:
        """The lines of all runs but those that are drained, and room for more."""
        lines = self._lines
        if lines is None:
            runs = [r for level in self._levels for r in level] + self.spine.runs
            lines = self._lines = addresses(runs, room=_RUNS_A_LEVEL)
            self._known = len(runs)
        return lines

    def table_beside_slots(self) -> npt.NDArray[np.int64]:
        """The runs as kernels read them that know about the slots."""
        return self._read()[: self._known]

    def table_with_room(self) -> npt.NDArray[np.int64]:
        """The runs without what is staged, and room for one more line behind them."""
        self.drain()
        return self._read()[: self._known + 1]

    def owners(self, *, staged: bool = False) -> tuple[Run, ...]:
        """What has to be kept while rows of the trace flow: the runs that have long strings."""
        if not len(self.layout.slots):
            return ()
        if staged and self._staged_loose is not None:
            self._sort_staged()
        self.drain()
        found = self._owners
        if found is None:
            found = self._owners = tuple(r for r in self.runs if r.heap.size > 1)
        if staged and self._staged is not None and self._staged.heap.size > 1:
            return (*found, self._staged)
        return found

    def find(self, keys: ZSet, *, staged: bool = False) -> Matches:
        """All rows whose key is that of one of ``keys``, once for each of those, in no order."""
        table = self.table(staged=staged)
        layout = self.layout
        room = 2 * len(keys)
        while True:
            rows = np.empty((room, layout.width), dtype=np.int64)
            which = np.empty(room, dtype=np.int64)
            found, needed = kernels.find(
                table,
                keys.hashes,
                keys.rows,
                keys.layout.key_parts,
                layout.key_parts,
                layout.width,
                layout.slots,
                which,
                rows,
            )
            if needed <= room:
                return Matches(ZSet(layout, rows[:found], self.owners(staged=staged)), which[:found])
            room = needed

    def weights(self, keys: ZSet, *, staged: bool = False) -> npt.NDArray[np.int64]:
        """The sum of the weights of the rows of each key: one line for each of ``keys``."""
        layout = self.layout
        out = np.empty((len(keys), layout.weights), dtype=np.int64)
        kernels.sums(
            self.table(staged=staged),
            keys.hashes,
            keys.rows,
            keys.layout.key_parts,
            layout.key_parts,
            layout.width,
            layout.payload,
            out,
        )
        return out

    def zset(self) -> ZSet:
        """Everything in it, consolidated."""
        return concatenate([run.zset() for run in self.runs], self.layout).consolidate()

    def snapshot(self) -> list[Run]:
        """The runs as they are now; they stay readable whatever happens to the trace."""
        return self.runs

    def fork(self) -> Trace:
        """Another trace with the same contents."""
        return Trace(self.layout, self.runs)

    def __len__(self) -> int:
        """How many rows it holds, before what later merges will cancel."""
        self.drain()
        return sum(len(r) for level in self._levels for r in level) + len(self.spine)

    @property
    def nbytes(self) -> int:
        """How much memory and file it takes."""
        return sum(r.nbytes for r in self.runs)

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows in {len(self.runs)} runs)"
