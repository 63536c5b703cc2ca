"""Cumulative: an aggregate of each row and all before it in the series.

A plain aggregate is a state of a few words that goes from row to row, and from chunk to chunk: a series may be of any
length. Sums of doubles, and their squared distances from the mean, are added up from the first row on, as Spark does
it, so they are Spark's bit for bit. Any other aggregate is left to SQL, which has a series in memory at once
(`OverSeries`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import ExpressionError
from headwater.kernels.arrays import read_only
from headwater.timeseries.frames import Frame, doubles_of, taken, words_of
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.narrow import Project
from headwater.timeseries.operators.series import OverSeries, Windowed, extended, extended_schema
from headwater.timeseries.plain_aggregates import PlainAggregate, plain_aggregate
from headwater.timeseries.querying import quoted
from headwater.timeseries.reaching import Carried, carried, places
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Running", "cumulative_node"]

_MOMENTS = {"stddev_samp", "stddev_pop", "var_samp", "var_pop"}
_RUNNING = {"sum", "count", "min", "max", "avg", "product"} | _MOMENTS

Numbers = npt.NDArray[np.int64]


def cumulative_node(below: Node, ordering: Ordering, columns: Mapping[str, str]) -> Node:
    """The node, or nodes, that compute these aggregates."""
    schema = below.schema
    found = {name: plain_aggregate(text, schema) for name, text in columns.items()}
    plain = {name: what for name, what in found.items() if what is not None and what.function in _RUNNING}
    others = {name: Windowed(columns[name], Frame(None, 0)) for name in columns if name not in plain}
    shown = f"cumulative {', '.join(columns.values())}"
    if not others:
        return Running(below, ordering, plain, shown)
    # SQL reads the columns as they were, so it is first; both replace columns only under other names.
    node: Node = OverSeries(below, ordering, others, shown)
    if plain:
        node = Running(node, ordering, plain, shown)
    wanted = extended_schema(schema, dict.fromkeys(columns, pa.null())).names
    return node if node.schema.names == wanted else Project(node, {n: quoted(n) for n in wanted}, "columns in order")


@dataclass(frozen=True)
class Running(Keyed):
    """Plain aggregates of the rows so far.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = pa.table({"t": [1, 2, 3], "p": [5.0, None, 4.0]})
    >>> run_here(cumulative_node(Values(trades), Ordering("t"), {"total": "sum(p)", "low": "min(p)"})).to_pylist()[1:]
    [{'t': 2, 'p': None, 'total': 5.0, 'low': 5.0}, {'t': 3, 'p': 4.0, 'total': 9.0, 'low': 4.0}]
    """

    input: Node
    ordering: Ordering
    columns: Mapping[str, PlainAggregate]
    shown: str

    @property
    def schema(self) -> pa.Schema:
        return extended_schema(self.input.schema, {name: what.type for name, what in self.columns.items()})

    def line(self) -> str:
        return self.shown

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        return (None if time in self.columns else Extent(time, time, before=None),)

    def kernel(self) -> KeyedKernel:
        return _Running(self.ordering, dict(self.columns))

    def frame(self, *frames: DataFrame) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        ordering = self.ordering
        window = (
            Window.partitionBy(*map(quoted, ordering.by))
            .orderBy(*map(quoted, (ordering.time, *ordering.tiebreak)))
            .rowsBetween(Window.unboundedPreceding, Window.currentRow)
        )
        new = {}
        for name, what in self.columns.items():
            column = f.lit(1) if what.column is None else f.col(quoted(what.column))
            new[name] = getattr(f, what.function)(column).over(window).alias(name)
        return frames[0].select(*[new[n] if n in new else f.col(quoted(n)) for n in self.schema.names])


@dataclass(frozen=True, slots=True)
class _Running:
    ordering: Ordering
    columns: Mapping[str, PlainAggregate]

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        states = {name: _State(what) for name, what in self.columns.items()}
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering)
        for part in carried(chunks, self.ordering.by):
            yield extended(part.table, {name: state.step(part) for name, state in states.items()})


@dataclass(slots=True)
class _State:
    """One aggregate of the series that is open."""

    what: PlainAggregate
    count: int = 0
    whole: int = 0
    double: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    words: Numbers = field(default_factory=lambda: np.zeros(2, np.int64))
    value: pa.Scalar | None = None

    def step(self, part: Carried) -> pa.Array | pa.ChunkedArray:
        """The aggregate at each row of a chunk."""
        function = self.what.function
        if not part.goes_on:
            self.count = self.whole = 0
            self.double[:] = 1.0 if function == "product" else 0.0
            self.words[:] = 0
        column = None if self.what.column is None else part.table.column(self.what.column)
        if column is not None and function in ("min", "max"):
            return self._extreme(part, column)
        counts = self._counted(part, column)
        if column is None or function == "count":
            return pa.array(counts)
        if function in _MOMENTS:
            return self._spread(part, column, counts)
        mask = None
        if column.null_count:
            empty = counts == 0
            mask = empty if empty.any() else None
        if pa.types.is_integer(self.what.type):
            return pa.array(self._whole_sums(column, part), mask=mask)
        from headwater.kernels.series import running_sums

        out = np.empty(part.table.num_rows)
        times = function == "product"
        running_sums(doubles_of(column, 1.0 if times else 0.0), part.starts, times, self.double, out)
        if function == "avg":
            with np.errstate(invalid="ignore", divide="ignore"):
                out = out / counts
        return pa.array(out, mask=mask)

    def _counted(self, part: Carried, column: pa.ChunkedArray | None) -> Numbers:
        """How many values there are up to each row."""
        if column is not None and column.null_count:
            counts = _along(np.asarray(pc.is_valid(column)).astype(np.int64), part.starts, self.count)
        else:
            counts = places(part.starts, part.table.num_rows) + 1
            counts[: part.starts[1] if len(part.starts) > 1 else None] += self.count
        self.count = int(counts[-1])
        return counts

    def _whole_sums(self, column: pa.ChunkedArray, part: Carried) -> Numbers:
        values = (column.fill_null(0) if column.null_count else column).to_numpy().astype(np.int64, copy=False)
        sums = _along(values, part.starts, self.whole)
        largest = max(abs(int(values.max())), abs(int(values.min()))) * len(values) + abs(self.whole)
        if largest >= 1 << 63:
            about = _along(values.astype(np.float64), part.starts, float(self.whole))
            scale = float(np.abs(np.cumsum(values, dtype=np.float64)).max()) * 1e-9
            if (np.abs(about - sums) > 1e18 + scale).any():
                raise ExpressionError.failed(f"sum({self.what.column})", "a number does not fit its type (overflow)")
        self.whole = int(sums[-1])
        return sums

    def _spread(self, part: Carried, column: pa.ChunkedArray, counts: Numbers) -> pa.Array:
        from headwater.kernels.series import running_moments

        found = np.empty(part.table.num_rows)
        running_moments(doubles_of(column), np.asarray(pc.is_valid(column)), part.starts, self.double, found)
        sample = self.what.function.endswith("_samp")
        with np.errstate(invalid="ignore"):
            found /= np.maximum(counts - sample, 1)
            if self.what.function.startswith("stddev"):
                np.sqrt(found, out=found)
        return pa.array(found, mask=counts <= sample)

    def _extreme(self, part: Carried, column: pa.ChunkedArray) -> pa.ChunkedArray:
        from headwater.kernels.series import running_extremes

        words, valid = words_of(column)
        at = np.empty(len(words), np.int64)
        running_extremes(read_only(words), valid, part.starts, 1 if self.what.function == "min" else -1, self.words, at)
        if part.goes_on:
            # What was before these rows stands behind them.
            before = pa.array([None if self.value is None else self.value.as_py()], column.type)
            at[at == -2] = len(words)
            column = pa.chunked_array([*column.chunks, before], column.type)
        hidden = at == -1
        found = taken(column, at, hidden if hidden.any() else None)
        self.value = found[-1]
        return found


def _along(values: npt.NDArray[Any], starts: Numbers, carry: float) -> npt.NDArray[Any]:
    """Running sums that begin anew at each start; the first goes on from the carry."""
    sums = np.cumsum(values)
    lengths = np.diff(starts, append=len(values))
    base = sums[starts] - values[starts]
    base[0] = -carry
    found: npt.NDArray[Any] = sums - np.repeat(base, lengths)
    return found
