"""MATCH_RECOGNIZE over rows in memory: sorted rows go in, the rows of the answer come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.kernels.row_reach import reach_within
from headwater.sql.matching.conditions import Conditions
from headwater.sql.matching.machine import FoundMatches, Search
from headwater.sql.matching.measures import measured
from headwater.sql.matching.places import Places
from headwater.sql.matching.rows import OWN, SortedRows, bounds_of, pattern_columns
from headwater.sql.matching.ties import decides_here, untied
from headwater.sql.nodes import Column, Ordering
from headwater.sql.plan import Match, Named, Plan, Project, Sort
from headwater.sql.types import is_comparable
from headwater.sql.vectorised import vector_of

__all__ = ["Matcher", "sorted_for"]

Ints = npt.NDArray[np.int64]
_CHUNK_ROWS = 1 << 20


def sorted_for(match: Match) -> Plan:
    """The rows that a match reads, in its order: columns by their keys. Ties are put in order by `Matcher.batches`."""
    read = pattern_columns(match)
    columns = tuple(a for a in match.child.output if a.key in read)
    given = [node.path[0] for node in (*match.partition, *(o.node for o in match.order)) if isinstance(node, Column)]
    ties = [a for a in columns if a.key not in given and is_comparable(a.dtype) and not decides_here(a.dtype)]
    keys = (*(Ordering(p) for p in match.partition), *match.order, *(Ordering(a.column) for a in ties))
    return Sort(Project(match.child, tuple(Named(replace(a, name=a.key), a.column) for a in columns)), keys)


class Matcher:
    """A match, compiled for rows of a schema; columns are called by their keys.

    A search raises `SearchStopped` soon after ``stopped`` is true.
    """

    def __init__(self, match: Match, *, stopped: Callable[[], bool] = lambda: False) -> None:
        self.match = match
        self.stopped = stopped
        self.schema = pa.schema(list(pattern_columns(match).items()))
        self.output = pa.schema([(a.key, a.dtype) for a in match.output])
        self.conditions = Conditions.of(match, pattern_columns(match))
        independent = self.conditions.are_independent and match.within is None
        self.search = Search.of(match.pattern, match.variables, match.skip, independent=independent)

    def batches(self, rows: Iterable[pa.RecordBatch], *, chunk_rows: int = _CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
        """The answer, as the sorted rows come; at least one partition is held at a time."""
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in rows:
            held.append(batch)
            count += batch.num_rows
            if count < chunk_rows or not self.match.partition:
                continue
            table = pa.Table.from_batches(held)
            bounds = bounds_of(table, self.match.partition)
            if len(bounds) <= 2:
                chunk_rows = 2 * count  # a partition that is longer than what is held
                continue
            cut = int(bounds[-2])
            yield from self.run(self._untied(table.slice(0, cut)), bounds[:-1]).to_batches()
            held = table.slice(cut).to_batches()
            count -= cut
        if count:
            yield from self.run(self._untied(pa.Table.from_batches(held))).to_batches()

    def _untied(self, table: pa.Table) -> pa.Table:
        keys = (*self.match.partition, *(o.node for o in self.match.order))
        return untied(table, [key for key in keys if isinstance(key, Column)])

    def run(self, table: pa.Table, bounds: Ints | None = None) -> pa.Table:
        """The answer over some whole partitions, in their order."""
        if table.num_rows == 0:
            return self.output.empty_table()
        rows = SortedRows(table, bounds_of(table, self.match.partition) if bounds is None else bounds)
        return self._answer(rows, self.find(rows))

    def find(self, rows: SortedRows) -> FoundMatches:
        """The matches in some rows."""
        loaded = self.conditions.load(rows)
        bounds = rows.bounds
        tasks = np.stack([bounds[:-1], bounds[1:], bounds[:-1], self._end_of_starts(rows)], axis=1)
        skip = self.match.skip
        skip_set = self.conditions.coded.set_number(skip.variables) if skip.variables else -1

        def ask(start: int, labels: Ints, variable: int, number: int) -> bool:
            return self._ask(rows, start, labels, variable, number)

        return self.search.run(loaded, tasks, self._reach(rows), skip_set, ask, self.stopped)

    def _end_of_starts(self, rows: SortedRows) -> Ints:
        """For each partition where its starts end: rows of another task stand behind them."""
        if OWN not in rows.table.column_names:
            return rows.bounds[1:]
        before = np.concatenate([[0], np.cumsum(np.asarray(rows.column(OWN)))]).astype(np.int64)
        return rows.bounds[:-1] + before[rows.bounds[1:]] - before[rows.bounds[:-1]]

    def _ask(self, rows: SortedRows, start: int, labels: Ints, variable: int, number: int) -> bool:
        """Is the condition of a variable true for the last of these rows?"""
        one = FoundMatches(np.array([start]), np.array([0, len(labels)]), labels.copy())
        names = self.match.variables
        places = Places(rows, one, names, np.zeros(1, np.int64), np.array([len(labels)]), np.array([number]))
        return bool(measured([self.conditions.whole[names[variable]]], places)[0][0].as_py())

    def _reach(self, rows: SortedRows) -> Ints:
        """For each row where a match that starts there has to end."""
        within = self.match.within
        if within is None:
            return rows.end
        node = self.match.order[0].node
        assert isinstance(node, Column) and within.value is not None
        vector = vector_of(rows.column(node.path[0]))
        times = vector.values
        length = vector_of(pa.array([within.value], within.dtype)).values[0]
        if pa.types.is_date(node.dtype):
            times = times.astype(np.int64) * 86_400_000_000
        there = np.ones(len(rows), bool) if vector.valid is None else np.asarray(vector.valid)
        if times.dtype.kind == "f":
            there &= ~np.isnan(times)
        reach = np.arange(1, len(rows) + 1, dtype=np.int64)
        if times.dtype.kind != "f":
            reach_within(times.astype(np.int64), np.ascontiguousarray(there), rows.bounds, int(length), reach)
            return reach
        for low, high in zip(rows.bounds[:-1].tolist(), rows.bounds[1:].tolist(), strict=True):
            inside = np.flatnonzero(there[low:high]) + low
            if len(inside):
                mine = times[inside]
                reach[inside] = inside[0] + np.searchsorted(mine, mine + length, side="right")
        return reach

    # --- the answer

    def _answer(self, rows: SortedRows, matches: FoundMatches) -> pa.Table:
        match = self.match
        lengths = matches.lengths
        numbers = _numbered(rows, matches)
        if match.every_row:
            of = np.repeat(np.arange(len(matches)), lengths)
            upto = np.arange(len(of)) - np.repeat(matches.offsets[:-1], lengths) + 1
            shown = (matches.labels & 1) == 0
            of, upto = of[shown], upto[shown]
            at = matches.starts[of] + upto - 1
            if match.empty:
                none = np.flatnonzero(lengths == 0)
                of, upto = np.concatenate([of, none]), np.concatenate([upto, np.zeros(len(none), np.int64)])
                at = np.concatenate([at, matches.starts[none]])
        else:
            of = np.arange(len(matches)) if match.empty else np.flatnonzero(lengths > 0)
            upto, at = lengths[of], matches.starts[of]
        places = Places(rows, matches, match.variables, of, upto, numbers)
        values = measured([m.node for m in match.measures], places)
        if match.every_row and match.unmatched:
            covered = np.zeros(len(rows) + 1, np.int64)
            np.add.at(covered, matches.starts, 1)
            np.add.at(covered, matches.starts + lengths, -1)
            free = np.cumsum(covered[:-1]) == 0
            free[matches.starts[lengths == 0]] = False
            lone = np.flatnonzero(free)
            at = np.concatenate([at, lone])
            of = np.concatenate([of, np.full(len(lone), -1)])
            values = [pa.concat_arrays([v, pa.nulls(len(lone), v.type)]) for v in values]
        if not match.every_row:  # a row for each match, and matches come in the order of their starts
            columns = [rows.taken(a.key, at) for a in match.kept] + values + [rows.taken(a.key, at) for a in match.rest]
            return pa.Table.from_arrays(columns, schema=self.output)
        # In the order of the rows; of matches that overlap, one after the other.
        anchor = np.where(of >= 0, matches.starts[of] if len(matches) else at, at)
        order = np.lexsort((at, of, anchor))
        columns = [rows.taken(a.key, at[order]) for a in match.kept]
        columns += [v.take(pa.array(order)) for v in values]
        columns += [rows.taken(a.key, at[order]) for a in match.rest]
        return pa.Table.from_arrays(columns, schema=self.output)


def _numbered(rows: SortedRows, matches: FoundMatches) -> Ints:
    """The number of each match in its partition, from 1 on."""
    part = rows.first[matches.starts] if len(matches) else np.zeros(0, np.int64)
    new = np.concatenate([[True], part[1:] != part[:-1]]) if len(part) else np.zeros(0, bool)
    begun = np.maximum.accumulate(np.where(new, np.arange(len(part)), 0)) if len(part) else part
    return np.arange(len(part)) - begun + 1
