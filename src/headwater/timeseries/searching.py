"""Places in sorted words, and in sorted series: for each question the first row of a series at or after a moment, all
in one search.

Times of different series go up and down again, so they cannot be searched as they are. They become one rising sequence:
each series is moved to begin just behind the end of the one before. Where that leaves 64 bits, times are first replaced
by their ranks among all moments that occur.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from headwater.timeseries.digits import order_by_digits

__all__ = ["first_from", "places_of", "series_of"]

Places = npt.NDArray[np.int64]

_MOST = 1 << 62
_MANY = 4_096


def series_of(starts: Places, rows: int) -> Places:
    """For each row the number of its series.

    >>> series_of(np.array([0, 2]), 3).tolist()
    [0, 0, 1]
    """
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=rows))


def places_of(words: Places, asked: Places, side: Literal["left", "right"]) -> Places:
    """`np.searchsorted`, for many questions in no order: they are sorted first, so that each search begins where memory
    is at hand.

    >>> places_of(np.array([1, 3, 5]), np.array([4, 0, 3]), "left").tolist()
    [2, 0, 1]
    """
    if len(asked) < _MANY or bool((asked[1:] >= asked[:-1]).all()):
        return np.searchsorted(words, asked, side)
    order = order_by_digits([asked])
    found = np.empty(len(asked), np.int64)
    found[order] = np.searchsorted(words, asked[order], side)
    return found


def first_from(times: Places, starts: Places, series: Places, moments: Places) -> Places:
    """For each question the first row of its series that is not before its moment; the end of the series, if all are.

    >>> times, starts = np.array([1, 5, 2, 3]), np.array([0, 2])
    >>> first_from(times, starts, np.array([0, 0, 1, 1]), np.array([2, 9, 0, 3])).tolist()
    [1, 2, 2, 3]
    """
    if not len(times) or not len(moments):
        return np.zeros(len(moments), np.int64)
    rows = len(times)
    ends = np.append(starts[1:], rows)
    first, last = times[starts], times[ends - 1]
    if int(last.max()) - int(first.min()) >= _MOST or float((last - first).astype(np.float64).sum()) >= _MOST / 2:
        known = np.unique(np.concatenate((times, moments)))
        times, moments = np.searchsorted(known, times), np.searchsorted(known, moments)
        first, last = times[starts], times[ends - 1]
    spans = last - first + 2
    base = np.cumsum(spans) - spans
    moved = times + np.repeat(base - first, ends - starts)
    # Clipped before it is moved: a moment may be anywhere.
    asked = np.clip(moments, first[series], last[series] + 1) - first[series] + base[series]
    return places_of(moved, asked, "left")
