"""Where the values of matches lie: for each row of an answer, the row that FIRST, LAST, PREV or NEXT means there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.kernels.row_places import nth_labels
from headwater.sql.matching.machine import FoundMatches
from headwater.sql.matching.rows import SortedRows
from headwater.sql.row_patterns.calls import Place

__all__ = ["Places"]

Ints = npt.NDArray[np.int64]


@dataclass
class Places:
    """The rows of an answer, and where they stand in their matches.

    Parameters
    ----------
    rows, matches
        what was searched, and what was found
    variables
        of the pattern, by number
    of
        for each row of the answer its match
    upto
        for each row of the answer how many labels of its match it sees, itself included
    numbers
        for each match its number in its partition
    """

    rows: SortedRows
    matches: FoundMatches
    variables: tuple[str, ...]
    of: Ints
    upto: Ints
    numbers: Ints
    _members: dict[tuple[str, ...], tuple[Ints, Ints]] = field(default_factory=dict)
    _entries: dict[Place, Ints] = field(default_factory=dict)
    _rows: dict[Place, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.of)

    @cached_property
    def entry_rows(self) -> Ints:
        """For each label the row that it belongs to."""
        starts, offsets = self.matches.starts, self.matches.offsets
        lengths = np.diff(offsets)
        return np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]) if len(offsets) else 0)

    def _chosen(self, variables: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        return np.array([not variables or v in variables for v in self.variables] or [False])

    def members(self, variables: tuple[str, ...]) -> tuple[Ints, Ints]:
        """The labels of some variables: where they are, and how many there are before each label."""
        if variables not in self._members:
            mask = self._chosen(variables)[self.matches.labels >> 1]
            before = np.concatenate([[0], np.cumsum(mask)]).astype(np.int64)
            self._members[variables] = np.flatnonzero(mask), before
        return self._members[variables]

    @cached_property
    def _is_whole(self) -> bool:
        """Does every row of the answer see all of its match?"""
        lengths = self.matches.lengths
        return bool((self.upto == lengths[self.of]).all())

    def entries(self, place: Place) -> Ints:
        """For each row of the answer the label that a place means, its shift left out; -1 for none."""
        place = replace(place, shift=0)
        if place not in self._entries:
            whole = place.final or self._is_whole
            self._entries[place] = self._of_whole(place) if whole else self._so_far(place)
        return self._entries[place]

    def _of_whole(self, place: Place) -> Ints:
        found = np.empty(len(self.of), np.int64)
        given = (self.matches.labels, self.matches.offsets, self._chosen(place.variables), self.of)
        nth_labels(*given, place.first, place.skipped, found)
        return found

    def _so_far(self, place: Place) -> Ints:
        begin = self.matches.offsets[self.of]
        end = begin + self.upto
        at, before = self.members(place.variables)
        first, behind = before[begin], before[end]
        wanted = first + place.skipped if place.first else behind - 1 - place.skipped
        there = (wanted >= first) & (wanted < behind)
        found = np.full(len(self.of), -1, np.int64)
        found[there] = at[wanted[there]]
        return found

    def row_of(self, place: Place) -> Ints:
        """For each row of the answer the row that a place means; -1 for none."""
        if place not in self._rows:
            entries = self.entries(place)
            rows = entries + (self.matches.starts - self.matches.offsets[:-1])[self.of]
            rows[entries < 0] = -1
            self._rows[place] = self.rows.moved(rows, place.shift)
        return self._rows[place]

    def label_of(self, place: Place) -> pa.Array:
        """For each row of the answer the variable of the row that a place means, as far as it is in the match."""
        entries = self.entries(place)
        begin = self.matches.offsets[self.of]
        end = self.matches.offsets[self.of + 1] if place.final else begin + self.upto
        moved = entries + place.shift
        there = (entries >= 0) & (moved >= begin) & (moved < end)
        numbers = np.zeros(len(entries), np.int64)
        numbers[there] = self.matches.labels[moved[there]] >> 1
        names = pa.array(self.variables or [""], pa.string())
        return names.take(pa.array(numbers, mask=~there))
