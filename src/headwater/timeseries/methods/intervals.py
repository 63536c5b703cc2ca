"""Interval sets: rows that hold from a start to an end, and what can be asked of them.

`IntervalMethods.intervals` makes `Intervals` of a stream; `Intervals.to_stream` makes a stream of them again, by the
time at which they start. Intervals are half-open: the end does not belong to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Self, TypeVar

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.spark_text import quoted_text
from headwater.timeseries.methods.base import Methods, names_of
from headwater.timeseries.methods.checking import checked
from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.operators.disjoint import Disjoint
from headwater.timeseries.operators.narrow import Filter, Project
from headwater.timeseries.operators.union import Union
from headwater.timeseries.querying import quoted
from headwater.timeseries.reading import new_names
from headwater.timeseries.times import time_field

__all__ = ["IntervalMethods", "Intervals"]

S = TypeVar("S", bound=Methods)


class Intervals(Generic[S]):
    """Rows that hold from a start up to, and not including, an end. Made by `stream.intervals`.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"start": [1, 3], "end": [5, 9], "a": [7, None], "b": [None, 8]})
    >>> shifts = IntervalMethods(Values(rows)).intervals(start="start", end="end")
    >>> shifts
    Intervals(from start to end: a, b)
    >>> run_here(shifts.disjoint().to_stream().plan)["start"].to_pylist()
    [1, 3, 5]
    """

    def __init__(self, stream: S, start: str, end: str, by: tuple[str, ...]) -> None:
        self._stream, self.start, self.end, self.by = stream, start, end, by

    @property
    def columns(self) -> list[str]:
        """The columns of values: all but the series and the bounds."""
        return [name for name in self._stream.columns if name not in (*self.by, self.start, self.end)]

    def __repr__(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"Intervals(from {self.start} to {self.end}{by}: {', '.join(self.columns)})"

    def disjoint(self) -> Intervals[S]:
        """The same values in intervals of which no two of one series overlap.

        Each series is cut wherever one of its intervals starts or ends, and a piece has the values of all intervals
        that hold in it; a null says nothing. Two that hold at once and differ in a value are refused. Pieces that
        touch and agree in all columns are one. An interval whose start is its end holds at no time, and gives
        nothing.
        """
        return self._of(checked(Disjoint(self._stream.plan, self.start, self.end, self.by)))

    def union(self, *others: Intervals[S]) -> Intervals[S]:
        """The intervals of this set and of others, matched by the names of columns; equal ones stay several."""
        plans = [self._stream.plan]
        for other in others:
            if not isinstance(other, Intervals):
                raise InputError.bad_argument("other", type(other).__name__, "intervals: stream.intervals(...)")
            if (other.start, other.end, other.by) != (self.start, self.end, self.by):
                raise InputError.bad_argument(
                    "other", repr(other), f"intervals from {self.start} to {self.end} by {list(self.by)}"
                )
            plans.append(other._stream.plan)
        return self._of(checked(Union(tuple(plans)))) if others else self

    def stacked(self, *, name: str = "metric_name", value: str = "metric_value") -> S:
        """A row for each value that is there: its series and interval, the name of its column, and the value.

        All columns have to be of one type, or of types of which one holds the others.
        """
        keys = [*self.by, self.start, self.end]
        if not self.columns:
            raise InputError.bad_argument("columns", [], "at least one column of values")
        new_names([name, value], keys, "name")
        parts: list[Node] = []
        for column in self.columns:
            there = Filter(self._stream.plan, f"{quoted(column)} IS NOT NULL")
            texts = {key: quoted(key) for key in keys} | {name: quoted_text(column), value: quoted(column)}
            parts.append(Project(there, texts, f"stack {column}"))
        plan = parts[0] if len(parts) == 1 else Union(tuple(parts))
        return self._stream._with(checked(plan), Ordering(self.start, self.by, (self.end, name)))

    def to_stream(self) -> S:
        """The intervals as a stream, by the time at which they start; the end decides between those of one start."""
        return self._stream._with(self._stream.plan, Ordering(self.start, self.by, (self.end,)))

    def _of(self, plan: Node) -> Intervals[S]:
        return Intervals(self._stream._with(plan), self.start, self.end, self.by)


class IntervalMethods(Methods):
    """Streams as interval sets."""

    def intervals(
        self,
        *,
        end: str,
        start: str | None = None,
        by: str | Sequence[str] | None = None,
        name: str | None = None,
        value: str | None = None,
        names: Sequence[str] | None = None,
    ) -> Intervals[Self]:
        """The rows as intervals that hold from ``start`` up to, and not including, ``end``.

        Parameters
        ----------
        end
            The column of their ends; it does not belong to the interval.
        start
            The column of their starts: the stream's time, if none is given.
        by
            What tells one series from another, if it is not what the stream says.
        name, value, names
            For stacked values, a row for each: the column that names them, the column that has them, and the names,
            each of which becomes a column of values. Rows of other names are left out. `Intervals.disjoint` puts
            values that hold at once into one row.

        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> rows = pa.table({"t": [1, 3], "end": [5, 9], "what": ["a", "b"], "v": [7, 8]})
        >>> stream = IntervalMethods(Values(rows), Ordering("t"))
        >>> stacked = stream.intervals(end="end", name="what", value="v", names=["a", "b"])
        >>> [tuple(row.values()) for row in run_here(stacked.disjoint().to_stream().plan).to_pylist()]
        [(1, 3, 7, None), (3, 5, 7, 8), (5, 9, None, 8)]
        """
        begins = self._column(start) if start is not None else self._ordered("intervals").time
        ends = self._column(end)
        keys = (
            (() if self.ordering is None else self.ordering.by)
            if by is None
            else tuple(map(self._column, names_of(by)))
        )
        for column in (begins, ends):
            time_field(self.schema, column)
        kinds = self.schema.field(begins).type, self.schema.field(ends).type
        if begins == ends or kinds[0] != kinds[1]:
            shown = f"{begins} ({kinds[0]}) and {ends} ({kinds[1]})"
            raise InputError.bad_argument("end", shown, "two columns of one type, the start and the end of an interval")
        if {begins, ends} & set(keys):
            raise InputError.bad_argument("by", list(keys), "other columns than the start and the end")
        if name is None and value is None and names is None:
            return Intervals(self, begins, ends, keys)
        if name is None or value is None or names is None or isinstance(names, str) or not names:
            raise InputError.bad_argument("names", names, "name=, value= and names=[...] together, for stacked values")
        return Intervals(self._with(self._unstacked(begins, ends, keys, name, value, list(names))), begins, ends, keys)

    def _unstacked(
        self, start: str, end: str, keys: tuple[str, ...], name: str, value: str, names: Sequence[str]
    ) -> Node:
        named, valued = quoted(self._column(name)), quoted(self._column(value))
        if not pa.types.is_string(self.schema.field(self._column(name)).type):
            raise InputError.bad_argument("name", name, "a column of strings")
        new_names(names, (*keys, start, end), "names")
        among = ", ".join(map(quoted_text, names))
        rows = Filter(self.plan, f"{named} IN ({among})")
        texts = {key: quoted(key) for key in (*keys, start, end)}
        texts |= {new: f"CASE WHEN {named} = {quoted_text(new)} THEN {valued} END" for new in names}
        return checked(Project(rows, texts, f"unstack {', '.join(names)}"))
