"""The search: the kernel, given room when it needs some, and asked again when Python has computed a condition."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.base.errors import ExpressionError
from headwater.kernels import row_patterns as kernels
from headwater.sql.matching.conditions import LoadedConditions
from headwater.sql.plan.match import Skip
from headwater.sql.row_patterns import Pattern, spelled
from headwater.sql.row_patterns.automaton import Automaton, automaton_of

__all__ = ["MOST_STEPS", "FoundMatches", "Search"]

MOST_STEPS = 200_000_000
"""Steps of the machine that one start may take before the pattern is said to explode."""

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

    def run(self, loaded: LoadedConditions, tasks: Ints, reach: Ints, skip_set: int, ask: Ask) -> FoundMatches:
        """The matches of ``tasks``: rows of (partition's begin and end, first start, end of the starts)."""
        may_ask = bool((loaded.spans == -2).any()) or any(
            bool((marks == 2).any()) for marks in (loaded.holds, loaded.int_marks, loaded.float_marks)
        )
        groups = [tasks] if may_ask else _shares(tasks)
        if len(groups) == 1:
            return self._run(loaded, tasks, reach, skip_set, ask)
        with ThreadPoolExecutor(len(groups)) as threads:
            found = threads.map(lambda group: self._run(loaded, group, reach, skip_set, ask), groups)
            return FoundMatches.joined(list(found))

    def _run(self, loaded: LoadedConditions, tasks: Ints, reach: Ints, skip_set: int, ask: Ask) -> FoundMatches:
        sets, folded = loaded.member.shape[0], loaded.aggregates.shape[0]
        widest = int((tasks[:, 1] - tasks[:, 0]).max(initial=0))
        takers = int((self.program[:, 0] == kernels.ROW).sum())
        width = (takers + 7) // 8
        if not self.independent or width * widest > _MOST_MEMO_BYTES:
            width = 0
        state = np.zeros(kernels.STATE, np.int64)
        state[1], state[6] = -1, -1
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
            reach,
            _SKIPS[self.skip.to],
            skip_set,
            _AT_ONCE,
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
            if status == kernels.ASK:
                start, depth, variable = int(state[1]), int(state[4]), int(state[10])
                number = int(state[8] - state[12]) + 1
                state[6] = int(ask(start, room["path"][: depth + 1], variable, number))
            elif status == kernels.PAUSE:
                if state[7] > MOST_STEPS:
                    raise ExpressionError.pattern_explodes(spelled(self.pattern), MOST_STEPS)
            elif status == kernels.FULL_PATH:
                room["path"] = _doubled(room["path"])
                by_depth = {name: _doubled(a) for name, a in by_depth.items()}
            elif status == kernels.FULL_STACK:
                room["stack"] = _doubled(room["stack"], axis=0)
            elif status == kernels.FULL_OUT:
                room["matches"] = _doubled(room["matches"], axis=0)
                while len(room["labels"]) < state[9] + state[4]:
                    room["labels"] = _doubled(room["labels"])
                room["labels"] = _doubled(room["labels"])
            else:
                made = ExpressionError.skip_to_nothing
                if status != kernels.NOWHERE_TO_SKIP:
                    made = ExpressionError.skip_to_first
                raise made(spelled(self.pattern), " or ".join(self.skip.variables))
        count, used = int(state[8]), int(state[9])
        found = room["matches"][:count]
        return FoundMatches(found[:, 0].copy(), np.append(found[:, 1], used), room["labels"][:used])


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
