"""Figures computed from rows: exact where the type of the column is.

Whole numbers, decimals, dates and timestamps are computed with as they are, and floats are added up without rounding in
between. Not-a-number is a value and the largest one, as in Spark. The rows that match are read from the table, so this
takes as long as reading them; `library_figures` says when it is needed.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.search.figures import Figure, FigureColumn, decimal_of

__all__ = ["RowFigures", "float_sum"]

_NAN = pa.scalar(math.nan)
Integers = np.ndarray[Any, np.dtype[np.int64]]


class RowFigures:
    """Rows, each column as the different values it has and, for each row, the number of its value."""

    def __init__(self, table: pa.Table, columns: Sequence[FigureColumn]) -> None:
        self._rows = table.num_rows
        self._values: dict[str, list[Any]] = {}
        self._codes: dict[str, Integers] = {}
        for column in {c.name: c for c in columns}.values():
            coded = _plain(column, table.column(column.name)).combine_chunks().dictionary_encode()
            self._values[column.name] = coded.dictionary.to_pylist()
            self._codes[column.name] = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)

    def of(self, figure: Figure, rows: Integers | None = None) -> Any:
        """A figure of some of the rows, by their numbers; of all by default."""
        rows = np.arange(self._rows) if rows is None else rows
        codes = self._codes[figure.column.name][rows]
        here, times = np.unique(codes[codes >= 0], return_counts=True)
        every = self._values[figure.column.name]
        counted = sorted(((every[n], k, n) for n, k in zip(here.tolist(), times.tolist(), strict=True)), key=_order)
        match figure.name:
            case "stats":
                return _stats(figure, counted)
            case "cardinality":
                return len(counted)
            case "percentiles":
                return _percentiles(figure, counted)
            case "terms":
                most = sorted(counted, key=lambda one: -one[1])[: figure.size]
                number = {code: at for at, (_, _, code) in enumerate(most)}
                names = [{"key": figure.column.shown(value)} for value, _, _ in most]
                return self._buckets(figure, rows, codes, number, names)
            case "ranges":
                number = {code: _place(figure.bounds, value) for value, _, code in counted}
                names = [figure.shown_range(n) for n in range(len(figure.bounds) + 1)]
                return self._buckets(figure, rows, codes, number, names)
        keys = [(figure.key_of(value), code) for value, _, code in counted]  # they grow with the values
        order = {_same(key): key for key, _ in keys}
        at = {same: n for n, same in enumerate(order)}
        names = [figure.shown_key(key) for key in order.values()]
        return self._buckets(figure, rows, codes, {code: at[_same(key)] for key, code in keys}, names)

    def _buckets(
        self, figure: Figure, rows: Integers, codes: Integers, number: dict[int, int], names: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Rows by the numbers of their buckets; values without a number are left out."""
        bucket_of = np.full(len(self._values[figure.column.name]) + 1, -1)  # the last is that of nulls
        bucket_of[list(number)] = list(number.values())
        mine = bucket_of[codes]
        order = np.argsort(mine, kind="stable")
        edges = np.searchsorted(mine[order], np.arange(len(names) + 1))
        made = []
        for name, low, high in zip(names, edges[:-1], edges[1:], strict=True):
            inside = rows[order[low:high]]
            figures = {key: self.of(inner, inside) for key, inner in figure.inner.items()}
            made.append({**name, "rows": int(high - low), **figures})
        return made


def _plain(column: FigureColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column as plain values that Arrow can compare: there is one zero, and one not-a-number."""
    match column.kind:
        case "date":
            return values.cast(pa.date32()).cast(pa.int32())
        case "timestamp":
            return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        case "float":
            floats = pc.add(values.cast(pa.float64()), 0.0)
            return pc.if_else(pc.is_nan(floats), _NAN, floats)
    return values


def _order(one: tuple[Any, int, int]) -> tuple[bool, Any]:
    value = one[0]
    return (True, 0) if value != value else (False, value)


def _same(key: Any) -> Any:
    return "nan" if key != key else key


def _place(bounds: Sequence[Any], value: Any) -> int:
    """How many bounds a value has reached."""
    return len(bounds) if value != value else bisect.bisect_right(bounds, value)


def _stats(figure: Figure, counted: Sequence[tuple[Any, int, int]]) -> dict[str, Any]:
    least, most = (counted[0][0], counted[-1][0]) if counted else (None, None)
    return figure.shown_stats(sum(times for _, times, _ in counted), least, most, _sum(figure.column, counted))


def _sum(column: FigureColumn, counted: Sequence[tuple[Any, int, int]]) -> Any:
    if column.kind == "float":
        return float_sum(list(chain.from_iterable(repeat(value, times) for value, times, _ in counted)))
    if column.kind == "decimal":
        return decimal_of(sum((Fraction(value) * times for value, times, _ in counted), Fraction(0)), column.scale)
    return sum(value * times for value, times, _ in counted)


def float_sum(values: Sequence[float]) -> float:
    """The float nearest to the sum of floats, which may be infinite, or not a number."""
    beyond = {value for value in values if not math.isfinite(value)}
    if beyond:
        return beyond.pop() if len(beyond) == 1 else math.nan
    try:
        return math.fsum(values)
    except OverflowError:  # on the way
        total = sum(map(Fraction, values), Fraction(0))
        try:
            return float(total)
        except OverflowError:
            return math.inf if total > 0 else -math.inf


def _percentiles(figure: Figure, counted: Sequence[tuple[Any, int, int]]) -> dict[float, Any]:
    """For each percentage, the value below which so many of the others are."""
    ends = np.cumsum([times for _, times, _ in counted])
    if not len(ends):
        return dict.fromkeys(figure.percents)
    ranks = [(percent, math.floor(Fraction(percent) / 100 * (int(ends[-1]) - 1))) for percent in figure.percents]
    at = {percent: int(np.searchsorted(ends, rank, side="right")) for percent, rank in ranks}
    return {percent: figure.column.shown(counted[n][0]) for percent, n in at.items()}
