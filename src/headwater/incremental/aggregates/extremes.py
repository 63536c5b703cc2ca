"""Extremes: the first and last rows of a key, in an order, under insertions and deletions.

The values of each key are kept, sorted, in a trace, which serves both ends. A change of a key cannot bring to life what
is before both the old first value and the first value that changed, so the walk to the new first value begins at the
earlier of these two, and steps over no dead value twice. That needs the old answers: those of fixed width are kept in
the accumulators of the aggregate, as limbs whose changes add up; strings, and values in the order of other columns, in
a trace of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headwater.incremental import sorting
from headwater.incremental.aggregates.aggregation import Extreme, selected
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.moving import word_moves
from headwater.incremental.partitions import Partitions
from headwater.incremental.run import Run
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels.extremes import extremes
from headwater.kernels.walk import live

__all__ = ["Extremes"]

Words = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _End:
    """One end: where its answers go, as (column of the output, column of the values), and where they are kept."""

    last: bool
    at: int
    targets: list[tuple[Placed, Placed]]
    table: Words
    answers: Trace | None


@dataclass(slots=True)
class _Answers:
    """For some of the keys a row of the layout of values: whether there is one, and the row."""

    there: Mask
    rows: Words


class Extremes:
    """The first and last rows of one order, for all keys.

    Parameters
    ----------
    arranged : Layout
        of the changes, keys first
    sums : Layout
        of the accumulators' rows: the keys
    output : Layout
        of the aggregate's rows
    wanted : sequence of Extreme
        what is asked: of the same rows in the same order
    at : int
        where its accumulators begin among those of the aggregate; it has ``accumulators`` of them
    """

    def __init__(self, arranged: Layout, sums: Layout, output: Layout, *, wanted: Sequence[Extreme], at: int) -> None:
        keys = arranged.names[: arranged.keys]
        first = wanted[0]
        names = [*keys, *(c for c in first.arguments if c not in keys)]
        self._arrangement = Arrangement(arranged, names, keys=arranged.keys, order=first.ordering)
        self._where = first.where
        self._required = first.required
        self.name = first.described
        self._layout = self._arrangement.target
        self._place = self._layout.column(first.column)
        kept = not first.order and not self._place.is_slot and first.column not in keys
        self._values = Trace(self._layout)
        self._start_parts = np.concatenate([self._layout.key_parts, self._layout.order_parts])
        self._key_words = word_moves(sums, self._layout, [(i, i) for i in range(arranged.keys)])
        self._key_mask = (1 << arranged.keys) - 1
        self._payload = sums.payload
        self.accumulators = 0
        self._begun: Future[Run] | None = None
        self._loaded: Run | None = None
        self._ends: list[_End] = []
        for last in (False, True):
            some = [(output.column(a.name), self._layout.column(a.column)) for a in wanted if a.last == last]
            if some:
                table = np.array([(p.word, p.null_word, p.null_bit) for p, _ in some], dtype=np.int64)
                answers = None if kept else Trace(self._layout)
                self._ends.append(_End(last, at + self.accumulators, some, table, answers))
                self.accumulators += 1 + 2 * self._place.words if kept else 0

    @property
    def fixed(self) -> bool:
        """Are all answers kept in the accumulators, and all rows with a value looked at?"""
        placed = self._arrangement.source.column(self._place.name)
        return self._where is None and placed.null_word == 0 and all(end.answers is None for end in self._ends)

    def planned(self) -> tuple[dict[str, Words], dict[str, int], Trace]:
        """Its part of the plan of a step in one call, and its trace; see `headwater.kernels.aggregate`."""
        layout, moving = self._layout, self._arrangement.moving
        source = self._arrangement.source
        absent = [source.column(c) for c in self._required]
        ends: list[tuple[int, int, int, int]] = []
        for end in self._ends:
            first = sum(e[3] - e[2] for e in ends)
            ends.append((end.at, int(end.last), first, first + len(end.table)))
        matrices = {
            "value_moves": moving.moves,
            "value_bits": moving.bits,
            "value_makings": layout.makings,
            "value_key_parts": layout.key_parts,
            "value_sort_parts": layout.sort_parts,
            "value_start_parts": self._start_parts,
            "value_key_moves": self._key_words,
            "ends": np.array(ends, dtype=np.int64),
            "targets": np.concatenate([end.table for end in self._ends]),
        }
        numbers = {
            "has_values": 1,
            "absent_mask": sum(1 << c.null_bit for c in absent if c.nullable),
            "value_moved": int(not self._arrangement.same),
            "value_payload": layout.payload,
            "value_word": self._place.word,
            "value_words": self._place.words,
        }
        return matrices, numbers, self._values

    def begin(self, delta: ZSet) -> None:
        """Have the values of a large change sorted on another thread, while the sums are added up;
        `step` waits for it.
        """
        self._begun = sorting.run_of(self.values(delta))

    def loading(self, expected: int) -> Partitions:
        """What the values of all rows are put into that are loaded at once, as `values` gives them; `loaded` takes
        their run.
        """
        return Partitions(self._layout, expected)

    def loaded(self, run: Run) -> None:
        """Have the values of a table that was loaded at once for the change of the next step."""
        self._loaded = run

    def values(self, delta: ZSet) -> ZSet:
        """The values of a change, by key and in order."""
        chosen = selected(delta, self._where, self._required)
        own = self._arrangement.apply(chosen)
        if own.rows is chosen.rows:
            own = ZSet(self._layout, chosen.rows, chosen.owners, hashes=chosen.hashes)
        return own

    def _staged(self, delta: ZSet) -> Run | None:
        begun, self._begun = self._begun, None
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            self._values.check()
            return self._values.stage_run(loaded) if len(loaded) else None
        if begun is None:
            return self._values.stage(self.values(delta))
        self._values.check()
        run = begun.result()
        return self._values.stage_run(run) if len(run) else None

    def step(self, delta: ZSet, touched: ZSet, old: Words, out: Words) -> None:
        """Write the old and the new answers to the two halves of ``out``,
        and what they change of accumulators to ``touched``.
        """
        staged = self._staged(delta)
        for end in self._ends:
            if end.answers is None:
                self._fixed(end, touched, old, out, staged=staged is not None)
            else:
                self._variable(end, touched, out, staged=staged is not None)

    def _fixed(self, end: _End, touched: ZSet, old: Words, out: Words, *, staged: bool) -> None:
        layout = self._layout
        extremes(
            self._values.table(staged=True),
            staged,
            layout.width,
            touched.hashes,
            touched.rows,
            self._payload,
            self._key_words,
            self._key_mask,
            old,
            end.at,
            self._place.word,
            self._place.words,
            layout.makings,
            self._start_parts,
            layout.key_parts,
            layout.sort_parts,
            end.last,
            out,
            end.table,
        )

    def _variable(self, end: _End, touched: ZSet, out: Words, *, staged: bool) -> None:
        before = self._remembered(end, touched)
        after = before
        if staged:
            after = self._found(end, touched, before)
            self._stage_answers(end, touched, before, after)
        n = len(touched)
        for target, source in end.targets:
            at = slice(source.word, source.word + source.words)
            for half, answers in ((out[:n], before), (out[n:], after)):
                none = ~answers.there | ((answers.rows[:, source.null_word] >> source.null_bit) & 1 != 0)
                half[:, target.word : target.word + target.words] = np.where(none[:, None], 0, answers.rows[:, at])
                half[:, target.null_word] |= none.astype(np.int64) << target.null_bit

    def _keyed(self, touched: ZSet) -> Words:
        """Rows of the values' layout with only the keys."""
        rows = np.zeros((len(touched), self._layout.width), dtype=np.int64)
        rows[:, self._key_words[:, 1]] = touched.rows[:, self._key_words[:, 0]]
        rows[:, 0] = touched.rows[:, 0] & self._key_mask
        return rows

    def _remembered(self, end: _End, touched: ZSet) -> _Answers:
        assert end.answers is not None
        rows = self._keyed(touched)
        there = np.zeros(len(touched), dtype=np.bool_)
        matches = end.answers.find(touched)
        found = ZSet(self._layout, matches.rows.rows, hashes=matches.which.view(np.uint64)).consolidate()
        which = found.hashes.view(np.int64)
        there[which] = True
        rows[which] = found.rows
        return _Answers(there, rows)

    def _found(self, end: _End, touched: ZSet, before: _Answers) -> _Answers:
        n = len(touched)
        layout = self._layout
        which = np.empty(n, dtype=np.int64)
        rows = np.empty((n, layout.width), dtype=np.int64)
        count = live(
            self._values.table(staged=True),
            layout.width,
            touched.hashes,
            before.rows,
            before.there,
            True,
            self._start_parts,
            layout.key_parts,
            layout.sort_parts,
            layout.slots,
            1,
            end.last,
            which,
            rows,
        )
        after = _Answers(np.zeros(n, dtype=np.bool_), self._keyed(touched))
        after.there[which[:count]] = True
        after.rows[which[:count]] = rows[:count]
        return after

    def _stage_answers(self, end: _End, touched: ZSet, before: _Answers, after: _Answers) -> None:
        assert end.answers is not None
        parts = []
        for answers, weight in ((before, -1), (after, 1)):
            rows = answers.rows[answers.there]
            rows[:, -1] = weight
            parts.append(ZSet(self._layout, rows))
        changed = concatenate(parts, self._layout)
        end.answers.stage(ZSet(self._layout, changed.rows, (*touched.owners, *self.owners())))

    def owners(self) -> tuple[Run, ...]:
        """What has to be kept while the answers flow."""
        if not len(self._layout.slots):
            return ()
        found = self._values.owners(staged=True)
        for end in self._ends:
            found += end.answers.owners(staged=True) if end.answers is not None else ()
        return found

    def commit(self) -> None:
        """Make staged state permanent."""
        self._values.commit()
        for end in self._ends:
            if end.answers is not None:
                end.answers.commit()

    def rollback(self) -> None:
        """Forget staged state."""
        self._begun = self._loaded = None
        for trace in self.traces().values():
            trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        """The state, by name."""
        found = {f"values of {self.name}": self._values}
        for end in self._ends:
            if end.answers is not None:
                found[f"{'last' if end.last else 'first'} of {self.name}"] = end.answers
        return found
