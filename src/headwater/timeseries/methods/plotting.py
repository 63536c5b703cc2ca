"""A stream as a picture: a few series of it, in as many points as can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.base import Methods, names_of
from headwater.timeseries.methods.ordered_arguments import whole_number
from headwater.timeseries.operators.thinned import Thinned
from headwater.timeseries.thinning import COLUMN, LEVEL, TIME, VALUE
from headwater.timeseries.times import time_field

if TYPE_CHECKING:
    from headwater.observe.chart import Chart, Kind
    from headwater.observe.ticks import Axis

__all__ = ["PlottingMethods", "chart_of"]


class PlottingMethods(Methods):
    """Pictures of a stream."""

    if TYPE_CHECKING:

        def collect(self, *, sort: bool = True) -> pa.Table: ...

    def plot(
        self,
        *columns: str,
        by: str | Sequence[str] | None = None,
        kind: Kind = "line",
        rows: int = 2_000,
        series: int = 8,
        title: str | None = None,
    ) -> Chart:
        """Run the stream, and draw columns of it over time; a notebook shows the chart, ``print`` draws it in text.

        What is drawn is chosen where the rows are, and the driver gets no more than that: of each series at most
        ``rows`` points, so that in every step of time the first, the last, the smallest and the largest value are
        there; and the first ``series`` series by their keys. To see others, filter the stream.

        Parameters
        ----------
        columns
            Numbers; all that do not make the order, if none are given.
        by
            What tells one series from another, if it is not what the stream says.
        kind
            "line", "points" or "bars".
        rows
            How many points a series may have.
        series
            How many series are drawn.
        title
            By default what is drawn.
        """
        from headwater.observe.chart import KINDS

        ordering = self._ordered("plot")
        time_field(self.schema, ordering.time)
        if kind not in KINDS:
            raise InputError.bad_argument("kind", kind, "line, points or bars")
        whole_number("rows", rows, at_least=8)
        whole_number("series", series, at_least=1)
        keys = ordering.by if by is None else tuple(dict.fromkeys(map(self._column, names_of(by))))
        node = Thinned(self.plan, ordering.time, keys, self._drawn(columns), rows, series)
        return chart_of(self._with(node).collect(), node, kind, title)

    def _drawn(self, columns: Sequence[str]) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(map(self._column, columns)))
        if not found:
            taken = set(self._ordered("plot").columns)
            found = tuple(f.name for f in self.schema if f.name not in taken and _is_number(f.type))
        if not found:
            raise InputError.bad_argument("columns", columns, "columns of numbers: the stream has none but its order")
        for name in found:
            if not _is_number(self.schema.field(name).type):
                kind = str(self.schema.field(name).type)
                raise UnsupportedError.column_type(name, kind, "name a column of numbers, or cast it first")
        return found


def chart_of(points: pa.Table, node: Thinned, kind: Kind, title: str | None = None) -> Chart:
    """The chart of what a `Thinned` gave.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"s": ["a", "a", "b"], "t": [1, 3, 1], "v": [1.0, 3.0, 2.0]})
    >>> node = Thinned(Values(rows), "t", ("s",), ("v",), rows=10, series=8)
    >>> print(chart_of(run_here(node), node, "line"))
    v by s
    a    ▁ █  1 … 3, last 3
    b    ▅    2 … 2, last 2
    time 1 … 3
    """
    from headwater.observe.chart import Chart, Curve

    curves: dict[tuple[str, int], tuple[list[int], list[float | None]]] = {}
    seen: dict[str, list[str]] = {}
    more, thinned = False, False
    for row in points.to_pylist():
        values_of_key = [row[name] for name in node.by]
        key = repr(values_of_key)  # NaN is not equal to itself, its text is
        if key not in seen and len(seen) == node.series:
            more = True
            continue
        seen.setdefault(key, ["null" if v is None else str(v) for v in values_of_key])
        thinned = thinned or row[LEVEL] >= 0
        times, values = curves.setdefault((key, row[COLUMN]), ([], []))
        times.append(row[TIME])
        values.append(None if row[VALUE] != row[VALUE] else row[VALUE])
    # Of one series the columns are enough to tell the curves apart.
    alone = len(seen) == 1 and len(node.columns) > 1
    drawn = [
        Curve(_label([] if alone else seen[key], node.columns[column], node), times, values, kind)
        for (key, column), (times, values) in curves.items()
    ]
    shown = ", ".join(node.columns)
    if node.by:
        shown += f" of {', '.join(next(iter(seen.values())))}" if alone else f" by {', '.join(node.by)}"
    notes = [f"the first {node.series} series"] if more else []
    notes += [f"thinned to {node.rows:,} points of each"] if thinned else []
    field = node.input.schema.field(node.time)
    return Chart(shown if title is None else title, drawn, axis=_axis(field.type), note="; ".join(notes))


def _label(key: list[str], column: str, node: Thinned) -> str:
    return " · ".join([*key, column] if len(node.columns) > 1 or not key else key)


def _axis(kind: pa.DataType) -> Axis:
    return "timestamp" if pa.types.is_timestamp(kind) else "date" if pa.types.is_date(kind) else "integer"


def _is_number(kind: pa.DataType) -> bool:
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(plain or pa.types.is_boolean(kind))
