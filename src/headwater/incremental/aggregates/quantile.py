"""Percentiles and medians, exact, kept by walking.

The values of a key are in a trace, sorted. Of each percentile the last answer is known, and how many values are before
it; after a change the new answer is as many values away as the place has moved (`headwater.kernels.select`), so a key
with a million values costs what changed in it. The answers of the last step are kept in the accumulators of the
aggregate, as limbs whose changes add up.

percentile, percentile_cont and median are between the two values around the place ``share * (count - 1)``;
percentile_disc is the value of rank ``ceil(share * count)``, and so is approx_percentile, whose promise (to be off by
no more than 1/accuracy of the ranks) an exact answer keeps for any accuracy. NaN is above every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Aggregation, Mask, Values, Words, from_arrow, place, selected
from headwater.incremental.aggregates.decimals import whole_numbers
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout, Order, Placed
from headwater.incremental.moving import word_moves
from headwater.incremental.packing import unpack_column
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, fill_derived
from headwater.kernels.select import select

__all__ = ["Quantile", "Quantiles"]

_Place = tuple[str, float, bool]
"""continuous or discrete, at which share, from the greatest?"""


@dataclass(frozen=True)
class Quantile(Aggregation):
    """The values of a column at shares of its order.

    Parameters
    ----------
    how : "continuous" or "discrete"
        between two values, as a double; or one of the values
    shares : tuple of float
        from 0 to 1, counted from the greatest if ``descending``
    many : bool
        is the answer an array, of one value for each share?
    as_double : bool
        are values of a discrete one given as doubles?
    function : str
        its name, for messages
    """

    column: str
    dtype: pa.DataType
    how: Literal["continuous", "discrete"]
    shares: tuple[float, ...]
    descending: bool = False
    many: bool = False
    as_double: bool = False
    function: str = "percentile"

    @property
    def item(self) -> pa.DataType:
        """The type of one answer."""
        return pa.float64() if self.how == "continuous" or self.as_double else self.dtype

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.list_(pa.field("element", self.item)) if self.many else self.item)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def text(self) -> str:
        shares = ", ".join(map(str, self.shares))
        return f"{self.function}({'DISTINCT ' * self.distinct}{self.column}, {shares}{' DESC' * self.descending})"

    @property
    def places(self) -> list[_Place]:
        """What has to be found: how, at which share, from which end."""
        return [(self.how, share, self.descending) for share in self.shares]


class Quantiles:
    """The values of one column, sorted, and where the answers of some aggregates are in it."""

    def __init__(self, arranged: Layout, sums: Layout, output: Layout, *, wanted: Sequence[Quantile], at: int) -> None:
        keys = arranged.names[: arranged.keys]
        first = wanted[0]
        self._wanted = [(output.column(q.name), q) for q in wanted]
        self._at = at
        self._payload = sums.payload
        self._where = None if first.distinct else first.where
        self._column = first.column
        names = keys if first.column in keys else [*keys, first.column]
        self._arrangement = Arrangement(arranged, names, keys=arranged.keys, order=[Order(first.column)])
        self._layout = self._arrangement.target
        self._placed = self._layout.column(first.column)
        self._values = Trace(self._layout)
        self._places = list(dict.fromkeys(p for q in wanted for p in q.places))
        self._one = 2 + 4 * self._placed.words
        self.accumulators = 1 + self._one * len(self._places)
        self._key_words = word_moves(sums, self._layout, [(i, i) for i in range(arranged.keys)])
        self._key_mask = (1 << arranged.keys) - 1
        self.name = f"{first.column}{' distinct' * first.distinct}{f' where {first.where}' if first.where else ''}"

    def step(self, delta: ZSet, touched: ZSet, all_old: Words, out: Words) -> None:
        """Write the old and the new answers to the two halves of ``out``,
        and what they change of accumulators to ``touched``.
        """
        old = all_old[:, self._at : self._at + self.accumulators]
        to = self._payload + self._at
        change = touched.rows[:, to : to + self.accumulators]
        own = self._arrangement.apply(selected(delta, self._where, (self._column,)))
        staged = self._values.stage(own)
        if staged is not None:
            change[:, 0] = Trace(self._layout, [staged]).weights(touched)[:, 0]
        total = old[:, 0] + change[:, 0]
        answers = {}
        for k, spot in enumerate(self._places):
            at = slice(1 + k * self._one, 1 + (k + 1) * self._one)
            there, before, low, high = self._kept(touched, old[:, at])
            lower, upper = _targets(spot, total)
            low_rows, high_rows = low.copy(), high.copy()
            found = there.copy()
            if staged is not None:
                low_rows, high_rows = self._keyed(touched), self._keyed(touched)
                before = before.copy()
                select(
                    self._values.table(staged=True),
                    self._layout.width,
                    touched.hashes,
                    low,
                    there,
                    before,
                    self._layout.key_parts,
                    self._layout.sort_parts,
                    lower,
                    upper,
                    low_rows,
                    high_rows,
                    found,
                )
                change[:, at] = self._limbs(found, before, low_rows, high_rows) - old[:, at]
            pair = np.concatenate([old[:, 0], total])
            answers[spot] = (
                np.concatenate([there, found]),
                self._words(low, low_rows),
                self._words(high, high_rows),
                pair,
            )
        self._owners: tuple[object, ...] = ()
        for placed, quantile in self._wanted:
            values = self._valued(quantile, answers)
            place(out, placed, values)
            self._owners += values.owners

    def _keyed(self, touched: ZSet) -> Words:
        rows = np.zeros((len(touched), self._layout.width), dtype=np.int64)
        rows[:, self._key_words[:, 1]] = touched.rows[:, self._key_words[:, 0]]
        rows[:, 0] = touched.rows[:, 0] & self._key_mask
        return rows

    def _kept(self, touched: ZSet, old: Words) -> tuple[Mask, Words, Words, Words]:
        words = self._placed.words
        low, high = self._keyed(touched), self._keyed(touched)
        for k in range(words):
            low[:, self._placed.word + k] = (old[:, 2 + 2 * k] << 32) + old[:, 3 + 2 * k]
            at = 2 + 2 * words + 2 * k
            high[:, self._placed.word + k] = (old[:, at] << 32) + old[:, at + 1]
        there = old[:, 0] != 0
        fill_derived(self._layout, low)
        return there, np.ascontiguousarray(old[:, 1]), low, high

    def _limbs(self, found: Mask, before: Words, low: Words, high: Words) -> Words:
        words = self._placed.words
        out = np.zeros((len(found), self._one), dtype=np.int64)
        out[:, 0] = found
        out[:, 1] = np.where(found, before, 0)
        for j, rows in enumerate((low, high)):
            for k in range(words):
                word = np.where(found, rows[:, self._placed.word + k], 0)
                at = 2 + 2 * words * j + 2 * k
                out[:, at] = word >> 32
                out[:, at + 1] = word & 0xFFFFFFFF
        return out

    def _words(self, old: Words, new: Words) -> Words:
        at = slice(self._placed.word, self._placed.word + self._placed.words)
        return np.concatenate([old[:, at], new[:, at]])

    def _valued(self, quantile: Quantile, answers: Mapping[_Place, tuple[Mask, Words, Words, Words]]) -> Values:
        given = [(spot, answers[spot]) for spot in quantile.places]
        if quantile.how == "discrete" and not quantile.as_double:
            found = [Values(low, ~there) for _, (there, low, _, _) in given]
        elif quantile.how == "discrete":
            found = [Values(_words_of(_doubles(self._placed, low)), ~there) for _, (there, low, _, _) in given]
        else:
            found = [
                Values(_words_of(_between(self._placed, spot, low, high, total)), ~there)
                for spot, (there, low, high, total) in given
            ]
        return _listed(found, quantile) if quantile.many else found[0]

    def owners(self) -> Sequence[object]:
        """What has to be kept while the answers flow."""
        return self._owners

    def commit(self) -> None:
        """Make staged state permanent."""
        self._values.commit()

    def rollback(self) -> None:
        """Forget staged state."""
        self._values.rollback()

    def traces(self) -> Mapping[str, Trace]:
        """The state, by name."""
        return {f"sorted values of {self.name}": self._values}


def _targets(place: _Place, total: Words) -> tuple[Words, Words]:
    """The places of the two rows that are needed, -1 where there are none."""
    how, share, descending = place
    none = total <= 0
    if how == "continuous":
        at = (total - 1) * (1 - share if descending else share)
        lower, upper = np.floor(at).astype(np.int64), np.ceil(at).astype(np.int64)
    else:
        rank = np.maximum(np.ceil(share * total).astype(np.int64) - 1, 0)
        lower = upper = np.maximum(total - 1 - rank if descending else np.minimum(rank, total - 1), 0)
    return np.where(none, -1, lower), np.where(none, -1, upper)


def _doubles(placed: Placed, words: Words) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if placed.kind in {"double", "float"}:
        return np.ascontiguousarray(words[:, 0]).view(np.float64)
    if pa.types.is_decimal(placed.dtype):
        unit = 10**placed.dtype.scale
        return np.array([x / unit for x in whole_numbers(words)], dtype=np.float64)
    return words[:, 0].astype(np.float64)


def _words_of(doubles: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Words:
    return np.ascontiguousarray(doubles).view(np.int64)[:, None]


def _between(
    placed: Placed, place: _Place, low: Words, high: Words, total: Words
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    _, share, descending = place
    at = (np.maximum(total, 1) - 1) * (1 - share if descending else share)
    a, b = _doubles(placed, low), _doubles(placed, high)
    with np.errstate(invalid="ignore"):
        found = (np.ceil(at) - at) * a + (at - np.floor(at)) * b
    same = (low == high).all(axis=1) | (a == b) | (np.floor(at) == np.ceil(at))
    found = np.where(same, a, found)
    found[found != found] = np.nan
    return np.ascontiguousarray(found)


def _listed(found: Sequence[Values], quantile: Quantile) -> Values:
    """One array for each key of what was found at each share; null where there is nothing."""
    layout = Layout(pa.schema([pa.field("value", quantile.item)]))
    placed = layout.columns[0]
    n = len(found[0].words)
    columns = []
    for one in found:
        rows = np.zeros((n, layout.width), dtype=np.int64)
        rows[:, placed.word : placed.word + placed.words] = one.words
        columns.append(unpack_column(placed, rows))
    nulls = found[0].nulls
    assert nulls is not None
    order = np.arange(n * len(found)).reshape(len(found), n).T.reshape(-1)
    items = pa.concat_arrays(columns).take(pa.array(order))
    offsets = pa.array(np.arange(n + 1, dtype=np.int32) * len(found))
    lists = pa.ListArray.from_arrays(offsets, items, type=quantile.field.type, mask=pa.array(nulls))
    return from_arrow(lists, quantile.field.type)
