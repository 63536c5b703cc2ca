"""The search: the kernel, given room when it needs some, and called again when Python has computed a condition.

A pattern may have more ways than anybody can wait for, so steps are limited: from one start, over all starts of a
partition, and over all partitions. The last two grow with the rows: starts that each end early are many in a long
partition, and a search that is linear takes some steps per row, while one that is quadratic or worse outgrows any such
allowance. A condition that Python computes costs as many steps as the machine takes in that time. The kernel comes back
after some steps, whatever it is doing, so a search can also be stopped from outside.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.base.errors import ExpressionError
from headwater.kernels import row_patterns as kernels
from headwater.sql.matching.conditions import LoadedConditions
from headwater.sql.plan.match import Skip
from headwater.sql.row_patterns import Pattern, spelled
from headwater.sql.row_patterns.automaton import Automaton, automaton_of

__all__ = ["MOST_STEPS", "FoundMatches", "Search", "SearchStopped"]

MOST_STEPS = 200_000_000
"""Steps of the machine that one start may take before the pattern is said to explode: two seconds, or twenty where
conditions are long.
"""
STEPS_PER_ROW = 10_000
"""Steps that each row of a partition adds for all of its starts together."""
ASK_STEPS = 10_000
"""What a condition that Python computes counts as: it takes from a tenth of a millisecond to some milliseconds."""
ASKS_PER_ROW = 20
"""Such conditions that each row adds, where there are any: a search without any going back asks for some per row."""
STARTS, PARTITIONS = 5, 50
"""How many starts of a partition, and of all partitions, may use `MOST_STEPS`; others are limited by the rows alone."""

_AT_ONCE = 20_000_000
_MOST_MEMO_BYTES = 1 << 28
_ALONE = 200_000
_SKIPS = {"past last row": 0, "next row": 1, "first": 2, "last": 3}
_CODES = {
    "row": kernels.ROW,
    "either": kernels.EITHER,
    "jump": kernels.JUMP,
    "at start": kernels.AT_START,
    "at end": kernels.AT_END,
    "begin loop": kernels.BEGIN_LOOP,
    "end if no row": kernels.END_IF_NO_ROW,
    "accept": kernels.ACCEPT,
}
Ints = npt.NDArray[np.int64]

Ask = Callable[[int, Ints, int, int], bool]
"""Whether a condition is true: a start, the labels of the rows from there on, the number of the variable, and that of
the match in its partition.
"""


class SearchStopped(Exception):
    """Whoever wanted the matches does not want them any more."""


@dataclass(frozen=True)
class FoundMatches:
    """Matches in the order in which they were found: where each starts, its first label, and how many it has.

    A label is a variable's number, doubled, plus one where the row is left out of the answer.
    """

    starts: Ints
    offsets: Ints
    labels: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @classmethod
    def joined(cls, parts: list[FoundMatches]) -> FoundMatches:
        """The matches of several searches, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([p.lengths for p in parts]) if parts else np.zeros(0, np.int64)
        return cls(
            np.concatenate([p.starts for p in parts]) if parts else lengths,
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([p.labels for p in parts]) if parts else lengths,
        )


@dataclass(frozen=True)
class Search:
    """A pattern, ready to be searched for."""

    automaton: Automaton
    program: Ints
    pattern: Pattern
    skip: Skip
    independent: bool

    @classmethod
    def of(cls, pattern: Pattern, variables: tuple[str, ...], skip: Skip, *, independent: bool) -> Search:
        automaton = automaton_of(pattern, variables)
        program, takers = [], 0
        for one in automaton.instructions:
            program.append((_CODES[one.op], one.first, one.second, takers))
            takers += one.op == "row"
        return cls(automaton, np.array(program, np.int64), pattern, skip, independent)

    def run(
        self,
        loaded: LoadedConditions,
        tasks: Ints,
        reach: Ints,
        skip_set: int,
        ask: Ask,
        stopped: Callable[[], bool] = lambda: False,
    ) -> FoundMatches:
        """The matches of ``tasks``: rows of (partition's begin and end, first start, end of the starts).

        Raises `SearchStopped` soon after ``stopped`` is true.
        """
        asks = bool((loaded.spans == -2).any()) or any(
            bool((marks == 2).any()) for marks in (loaded.holds, loaded.int_marks, loaded.float_marks)
        )
        limits = _Limits(self.pattern, tasks, reach, ASKS_PER_ROW * ASK_STEPS if asks else 0)
        groups = [tasks] if asks else _shares(tasks)
        if len(groups) == 1:
            return self._run(loaded, limits, skip_set, ask, stopped)
        failed = Event()

        def share(group: Ints) -> FoundMatches:
            try:
                mine = replace(limits, tasks=group)
                return self._run(loaded, mine, skip_set, ask, lambda: stopped() or failed.is_set())
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(len(groups)) as threads:
            found = [threads.submit(share, group) for group in groups]
            try:
                wait(found)
            except BaseException:  # an interrupt from the keyboard, which only this thread gets
                failed.set()
                raise
        errors = [error for one in found if (error := one.exception()) is not None]
        if errors:
            raise next((e for e in errors if not isinstance(e, SearchStopped)), errors[0])
        return FoundMatches.joined([one.result() for one in found])

    def _run(
        self, loaded: LoadedConditions, limits: _Limits, skip_set: int, ask: Ask, stopped: Callable[[], bool]
    ) -> FoundMatches:
        tasks = limits.tasks
        sets, folded = loaded.member.shape[0], loaded.aggregates.shape[0]
        widest = int((tasks[:, 1] - tasks[:, 0]).max(initial=0))
        takers = int((self.program[:, 0] == kernels.ROW).sum())
        width = (takers + 7) // 8
        if not self.independent or width * widest > _MOST_MEMO_BYTES:
            width = 0
        state = np.zeros(kernels.STATE, np.int64)
        state[kernels.START], state[kernels.ANSWER] = -1, -1
        room: dict[str, Any] = {
            "path": np.zeros(1024, np.int64),
            "stack": np.zeros((1024, 2), np.int64),
            "matches": np.zeros((max(1024, widest // 8), 3), np.int64),
            "labels": np.zeros(max(4096, widest), np.int64),
        }
        by_depth = {
            "counts": np.zeros((sets, 1024), np.int64),
            "lists": np.zeros((sets, 1024), np.int64),
            "sums": np.zeros((folded, 1024), np.int64),
            "double_sums": np.zeros((folded, 1024), np.float64),
            "seen": np.zeros((folded, 1024), np.int64),
        }
        memo = np.zeros(width * widest, np.uint8)
        loops = np.full(max(self.automaton.loops, 1), -1, np.int64)
        given: tuple[Any, ...] = (
            self.program,
            *vars_of(loaded),
            tasks,
            limits.reach,
            _SKIPS[self.skip.to],
            skip_set,
            min(_AT_ONCE, MOST_STEPS),
            memo,
            width,
            state,
        )
        while True:
            out = (room["matches"], room["labels"])
            arguments = [*given, room["stack"], loops, room["path"], *by_depth.values(), *out]
            status = kernels.match_rows(*arguments)
            if status == kernels.DONE:
                break
            if status in (kernels.ASK, kernels.PAUSE):
                if stopped():
                    raise SearchStopped
                limits.check(state)
            if status == kernels.ASK:
                path = room["path"][: int(state[kernels.DEPTH]) + 1]
                number = int(state[kernels.MATCHES] - state[kernels.BEFORE]) + 1
                answer = ask(int(state[kernels.START]), path, int(state[kernels.ASKED]), number)
                state[kernels.ANSWER] = int(answer)
                state[kernels.STEPS] += ASK_STEPS
            elif status == kernels.FULL_PATH:
                room["path"] = _doubled(room["path"])
                by_depth = {name: _doubled(a) for name, a in by_depth.items()}
            elif status == kernels.FULL_STACK:
                room["stack"] = _doubled(room["stack"], axis=0)
            elif status == kernels.FULL_OUT:
                room["matches"] = _doubled(room["matches"], axis=0)
                while len(room["labels"]) < state[kernels.LABELS] + state[kernels.DEPTH]:
                    room["labels"] = _doubled(room["labels"])
                room["labels"] = _doubled(room["labels"])
            elif status != kernels.PAUSE:
                made = ExpressionError.skip_to_nothing
                if status != kernels.NOWHERE_TO_SKIP:
                    made = ExpressionError.skip_to_first
                raise made(spelled(self.pattern), " or ".join(self.skip.variables))
        count, used = int(state[kernels.MATCHES]), int(state[kernels.LABELS])
        found = room["matches"][:count]
        return FoundMatches(found[:, 0].copy(), np.append(found[:, 1], used), room["labels"][:used])


@dataclass(frozen=True)
class _Limits:
    """How many steps a search over ``tasks`` may take; ``asking`` is what each row adds for asking Python."""

    pattern: Pattern
    tasks: Ints
    reach: Ints
    asking: int

    @cached_property
    def _rows(self) -> Ints:
        """For each task the rows up to its end."""
        return np.cumsum(self.tasks[:, 1] - self.tasks[:, 0])

    def check(self, state: Ints) -> None:
        """Raise an error where the steps so far are too many."""
        task, start = int(state[kernels.TASK]), int(state[kernels.START])
        mine = int(state[kernels.STEPS])
        every = int(state[kernels.EARLIER]) + mine
        here = every - int(state[kernels.BEGUN])
        per_row = STEPS_PER_ROW + self.asking
        rows = int(self.tasks[task, 1] - self.tasks[task, 0])
        found = (
            (mine, MOST_STEPS + (int(self.reach[start]) - start) * self.asking, "from one row"),
            (here, STARTS * MOST_STEPS + rows * per_row, "in one partition"),
            (every, PARTITIONS * MOST_STEPS + int(self._rows[task]) * per_row, f"in {task + 1:,} partitions"),
        )
        for steps, most, where in found:
            if steps > most:
                raise ExpressionError.pattern_explodes(spelled(self.pattern), most, where)


def vars_of(loaded: LoadedConditions) -> tuple[Any, ...]:
    """The arrays in the order in which the kernel takes them."""
    return tuple(np.ascontiguousarray(getattr(loaded, name)) for name in loaded.__dataclass_fields__)


def _doubled(array: Any, axis: int = -1) -> Any:
    more = np.zeros_like(array)
    return np.ascontiguousarray(np.concatenate([array, more], axis=axis))


def _shares(tasks: Ints) -> list[Ints]:
    """The tasks in as many parts as there are processors, if there are enough rows."""
    rows = np.cumsum(tasks[:, 3] - tasks[:, 2])
    parts = min(os.cpu_count() or 1, len(tasks), int(rows[-1]) // _ALONE if len(tasks) else 1)
    if parts <= 1:
        return [tasks]
    cuts = np.searchsorted(rows, np.arange(1, parts) * (rows[-1] / parts), side="right")
    return [part for part in np.split(tasks, np.unique(cuts)) if len(part)]
