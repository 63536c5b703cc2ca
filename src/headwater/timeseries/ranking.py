"""The first rows of an order, of all rows or of each group, decided by the rows alone.

The problem: the first k rows by some columns are not decided where rows tie for the last place. The rule: ties are
decided by the other columns in their order in the schema, ascending; rows that agree in those as well are equal, and it
does not matter which of them is taken. Ties are few, so the other columns are looked at only for the rows that tie for
the last place.

Order: ascending has nulls first and NaN last, descending is the reverse of it, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.rows import comparable

__all__ = ["By", "first_rows", "tiebreaks"]

By = tuple[str, bool]
"""A column, and whether it descends."""

Words = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]


def tiebreaks(schema: pa.Schema, decided: Sequence[str]) -> tuple[str, ...]:
    """The columns that decide between rows which agree in these: all others that have an order.

    >>> tiebreaks(pa.schema([("a", pa.int8()), ("b", pa.int8()), ("c", pa.list_(pa.int8()))]), ["a"])
    ('b',)
    """
    return tuple(f.name for f in schema if f.name not in decided and not pa.types.is_nested(f.type))


def first_rows(rows: pa.Table, k: int, by: Sequence[By], keys: Sequence[str] = ()) -> pa.Table:
    """The first k rows by these columns, of each key if there are any, in order.

    >>> rows = pa.table({"v": [1, 3, 3, 2], "w": ["d", "c", "b", "a"]})
    >>> first_rows(rows, 1, [("v", True)]).to_pylist()
    [{'v': 3, 'w': 'b'}]
    """
    if not keys:
        rows = rows.take(pa.array(_candidates(rows, k, by)))
    if not rows.num_rows:
        return rows
    key_words = [_short(w) for name in keys for w in comparable(rows.column(name))]
    words = [w for name, descends in by for w in _words(rows, name, descends)]
    order = np.lexsort([*key_words, *words][::-1]) if words else np.arange(rows.num_rows)
    group = _places(key_words, order)
    run = _places([*key_words, *words], order)
    places = np.arange(len(order))
    end_of_run = np.append(run[1:], False)
    run_starts, run_ends = np.flatnonzero(run), np.flatnonzero(end_of_run | (places == len(order) - 1)) + 1
    group_of_run = np.maximum.accumulate(np.where(group, places, 0))[run_starts]
    undecided = (run_starts - group_of_run < k) & (run_ends - group_of_run > k)
    if undecided.any():
        _decide(rows, order, run_starts[undecided], run_ends[undecided], [*(n for n, _ in by), *keys])
    within = places - np.maximum.accumulate(np.where(group, places, 0))
    return rows.take(pa.array(order[within < k]))


def _decide(rows: pa.Table, order: Indices, starts: Indices, ends: Indices, decided: Sequence[str]) -> None:
    """Put the rows of some runs in the order of the other columns."""
    lengths = ends - starts
    runs = np.repeat(np.arange(len(starts)), lengths)
    at = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(starts, lengths)
    tied = rows.take(pa.array(order[at]))
    names = tiebreaks(rows.schema, decided)
    words: list[Words] = [runs, *(w for name in names for w in comparable(tied.column(name)))]
    found = np.lexsort(words[::-1])
    nested = [f.name for f in rows.schema if pa.types.is_nested(f.type)]
    same = ~_places(words, found)
    if nested and same.any():
        _check_equal(tied.select(nested), found[np.flatnonzero(same) - 1], found[same])
    order[at] = order[at][found]


def _check_equal(nested: pa.Table, before: Indices, after: Indices) -> None:
    a, b = nested.take(pa.array(before)), nested.take(pa.array(after))
    for name in nested.column_names:
        if not a.column(name).equals(b.column(name)):
            what = f"columns in which rows tie that differ only in `{name}`"
            raise InputError.bad_argument("by", what, "columns that decide: nested values have no order of their own")


def _candidates(rows: pa.Table, k: int, by: Sequence[By]) -> Indices:
    """The rows that are among the first k, and those that tie with the last of them: a word at a time, no sorting."""
    sure: list[Indices] = []
    tied = np.arange(rows.num_rows)
    for name, descends in by:
        for word in _words(rows, name, descends):
            wanted = k - sum(map(len, sure))
            if len(tied) <= wanted:
                break
            here = word[tied]
            last = np.partition(here, wanted - 1)[wanted - 1]
            sure.append(tied[here < last])
            tied = tied[here == last]
    return np.sort(np.concatenate([*sure, tied]))


def _words(rows: pa.Table, name: str, descends: bool) -> list[Words]:
    words = comparable(rows.column(name))
    if not descends:
        return words
    return [-w if w.dtype.kind == "f" else ~w for w in words]


def _short(word: Words) -> Words:
    """The same order in sixteen bits where they are enough: numpy sorts these by radix."""
    if word.dtype.kind != "i" or word.itemsize <= 2:
        return word
    low, high = int(word.min()), int(word.max())
    return (word - low).astype(np.uint16) if high - low < 1 << 16 else word


def _places(words: Sequence[Words], order: Indices) -> npt.NDArray[np.bool_]:
    """Where in this order one of the words is another than before."""
    starts = np.zeros(len(order), np.bool_)
    starts[:1] = True
    for word in words:
        ordered = word[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    return starts
