"""What there is in each column, in one pass: describe.

A row for each column: how many values, nulls and NaN it has, and for numbers the mean, the sample standard deviation,
the smallest and largest value (exactly) and the quartiles (within the error of `quantiles`). Null and NaN are in none
of these. Numbers are given as doubles. Of dates, timestamps and the stream's time there are the first and the last,
as text; of the stream's time also how many series there are, and how many rows the smallest and the largest of them
have. Of other columns there are the counts only. Standard deviations are of values relative to one of the column's
own, so that large ones that are close together keep their digits; the last ones depend on how rows are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.timeseries.node import Gathered, Node, Ordering, StreamKernel
from headwater.timeseries.quantile_sketch import SKETCH_SCHEMA, QuantileSketch
from headwater.timeseries.quantile_words import from_words, has_words, is_number, to_words
from headwater.timeseries.series_counts import ROWS, SeriesCounts

__all__ = ["Describe"]

_MOMENTS = -2
"""The level of the rows that hold count, nulls, NaN, centre, sum and squares, as the bits of doubles."""
_KEY = "__hw_key_"
_QUARTILES = (0.25, 0.5, 0.75)
_SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("type", pa.string()),
        ("count", pa.int64()),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("mean", pa.float64()),
        ("stddev", pa.float64()),
        ("min", pa.float64()),
        ("p25", pa.float64()),
        ("p50", pa.float64()),
        ("p75", pa.float64()),
        ("max", pa.float64()),
        ("first", pa.string()),
        ("last", pa.string()),
        ("series", pa.int64()),
        ("fewest_rows", pa.int64()),
        ("most_rows", pa.int64()),
    ]
)

Moments = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Describe(Gathered):
    """A row about each column.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"v": [1, 2, 3, None], "s": ["a", "b", None, None]})
    >>> found = run_here(Describe(Values(rows), ("v", "s"), 0.01))
    >>> [(r["column"], r["count"], r["nulls"], r["mean"], r["p50"], r["max"]) for r in found.to_pylist()]
    [('v', 3, 1, 2.0, 2.0, 3.0), ('s', 2, 2, None, None, None)]
    """

    input: Node
    columns: tuple[str, ...]
    error: float
    of_series: Ordering | None = None
    """What makes the rows series, if something does."""

    @property
    def schema(self) -> pa.Schema:
        return _SCHEMA

    @property
    def partial_schema(self) -> pa.Schema:
        by = () if self.of_series is None else self.of_series.by
        keys = [self.input.schema.field(name).with_name(f"{_KEY}{i}").with_nullable(True) for i, name in enumerate(by)]
        return pa.schema([*SKETCH_SCHEMA, *keys, pa.field(ROWS, pa.int64())])

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        by = () if self.of_series is None else self.of_series.by
        return (frozenset((*self.columns, *by)),)

    def line(self) -> str:
        return f"describe {len(self.columns):,} columns"

    def kernels(self) -> tuple[StreamKernel, StreamKernel]:
        known = self.input.schema
        fields = tuple(known.field(name) for name in self.columns)
        series = None if self.of_series is None or self.of_series.time not in self.columns else self.of_series
        return _Partial(fields, self.error, series, self.partial_schema), _Finish(fields, self.error, series)


@dataclass(frozen=True, slots=True)
class _Partial:
    fields: tuple[pa.Field, ...]
    error: float
    of_series: Ordering | None
    schema: pa.Schema

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        sketch = QuantileSketch(len(self.fields), self.error)
        moments = np.zeros((len(self.fields), 6))
        nothing = np.empty(0, np.int64)
        counts = SeriesCounts(() if self.of_series is None else self.of_series.by)
        for table in tables:
            if self.of_series is not None:
                counts.add(table)
            words = []
            for i, field in enumerate(self.fields):
                column = table.column(field.name)
                there = has_words(field.type)
                words.append(to_words(column) if there else nothing)
                moments[i] = _merged(moments[i], _moments(column, field, words[-1]))
            sketch.add(words)
        numbers = pa.array(np.arange(len(self.fields), dtype=np.int32))
        levels = pa.array(np.full(len(self.fields), _MOMENTS, np.int16))
        offsets = pa.array(np.arange(len(self.fields) + 1, dtype=np.int64) * 6)
        lists = pa.LargeListArray.from_arrays(offsets, pa.array(moments.ravel().view(np.int64)))
        made = pa.Table.from_arrays([numbers, levels, lists], schema=SKETCH_SCHEMA)
        series = counts.found()
        if series is not None:
            series = series.rename_columns(self.schema.names[len(SKETCH_SCHEMA) :])
        parts = [made, sketch.to_arrow(), *([] if series is None else [series])]
        yield pa.concat_tables([_filled(part, self.schema) for part in parts])


@dataclass(frozen=True, slots=True)
class _Finish:
    fields: tuple[pa.Field, ...]
    error: float
    of_series: Ordering | None

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        sketch = QuantileSketch(len(self.fields), self.error)
        moments = np.zeros((len(self.fields), 6))
        counts: SeriesCounts | None = None
        for table in tables:
            counted = pc.is_valid(table.column(ROWS))
            names = table.column_names[len(SKETCH_SCHEMA) :]
            counts = counts or SeriesCounts(names[:-1])
            counts.merge(table.filter(counted).select(names))
            table = table.filter(pc.invert(counted)).select(SKETCH_SCHEMA.names)  # noqa: PLW2901
            about = pc.equal(table.column("level"), _MOMENTS)
            mine = table.filter(about)
            found = np.asarray(pc.list_flatten(mine.column("values"))).view(np.float64).reshape(-1, 6)
            for column, one in zip(mine.column("column").to_pylist(), found, strict=True):
                moments[column] = _merged(moments[column], one)
            sketch.merge(table.filter(pc.invert(about)))
        quartiles = sketch.quantiles(_QUARTILES)
        low, high = sketch.extremes()
        rows = []
        for i, field in enumerate(self.fields):
            count, nulls, nans, centre, total, squares = moments[i]
            row = {"column": field.name, "type": str(field.type), "count": count, "nulls": nulls, "nans": nans}
            found_here = quartiles[i]
            is_time = self.of_series is not None and field.name == self.of_series.time
            if found_here is not None and (is_time or not is_number(field.type)):
                ends = from_words(np.array([low[i], high[i]]), field.type)
                row["first"], row["last"] = (_shown(value) for value in ends)
            if is_time and counts is not None:
                row |= _about_series(counts)
            if found_here is not None and is_number(field.type):
                words = np.array([low[i], *found_here, high[i]])
                values = [float(v) for v in from_words(words, field.type).to_pylist()]
                row |= dict(zip(("min", "p25", "p50", "p75", "max"), values, strict=True))
                row["mean"] = centre + total / count
                with np.errstate(all="ignore"):
                    spread = np.maximum(squares - total * total / count, 0.0)
                    row["stddev"] = np.sqrt(spread / (count - 1)) if count > 1 else None
            rows.append(row)
        yield pa.Table.from_pylist(rows, schema=_SCHEMA)


def _filled(part: pa.Table, schema: pa.Schema) -> pa.Table:
    """A part of what a task says, with nulls in the columns of the others."""
    there = set(part.column_names)
    columns = [part.column(f.name) if f.name in there else pa.nulls(part.num_rows, f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _shown(value: pa.Scalar[Any]) -> str:
    found = value.cast(pa.string()).as_py()
    # Arrow shows an instant as UTC, with a Z at its end.
    return str(found)


def _about_series(counts: SeriesCounts) -> dict[str, int]:
    found = counts.found()
    if found is None:
        return {"series": 0}
    rows = np.asarray(found.column(found.num_columns - 1))
    return {"series": len(rows), "fewest_rows": int(rows.min()), "most_rows": int(rows.max())}


def _moments(column: pa.ChunkedArray, field: pa.Field, words: npt.NDArray[np.int64]) -> Moments:
    nulls = column.null_count
    there = len(column) - nulls
    if not is_number(field.type):
        return np.array([there, nulls, 0, 0, 0, 0], np.float64)
    nans = there - len(words)
    if not len(words):
        return np.array([0, nulls, nans, 0, 0, 0], np.float64)
    values = np.asarray(from_words(words, field.type).cast(pa.float64(), safe=False))
    finite = values[np.isfinite(values)]
    centre = float(finite[np.argmin(np.abs(finite - finite.mean()))]) if len(finite) else 0.0
    with np.errstate(all="ignore"):
        values = values - centre
        return np.array([len(words), nulls, nans, centre, values.sum(), values @ values])


def _merged(a: Moments, b: Moments) -> Moments:
    """The moments of both, about the centre of the first that has one."""
    if not a[0]:
        return np.array([b[0], a[1] + b[1], a[2] + b[2], *b[3:]])
    with np.errstate(all="ignore"):
        by = b[3] - a[3]
        total = b[4] + by * b[0]
        squares = b[5] + 2 * by * b[4] + by * by * b[0]
    return np.array([a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3], a[4] + total, a[5] + squares])
