"""Figures: aggregations that were checked against the fields of an index, and how their values are shown.

Two modules compute a figure, and both do so over *plain* values: whole numbers, floats, decimals, text and truth
values, dates as days and timestamps as microseconds since 1970. `library_figures` asks the library, which counts in
64-bit floats; `row_figures` reads the rows. What both have to agree on is here: where a bucket begins, what a bound
means, and what people are shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from headwater.base.errors import SearchQueryError
from headwater.search.values import days_of, microseconds_of

__all__ = [
    "Calendar", "Figure", "FigureColumn", "FigureKind", "as_written", "average", "decimal_of",
    "months_of",
]  # fmt: skip

FigureKind = Literal["text", "integer", "float", "decimal", "boolean", "date", "timestamp"]
_DAY_0 = date(1970, 1, 1)
_TIME_0 = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = {"date": days_of(date.min), "timestamp": microseconds_of(datetime.min.replace(tzinfo=UTC))}
_LATEST = {"date": days_of(date.max), "timestamp": microseconds_of(datetime.max.replace(tzinfo=UTC))}


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """A column of the table, its field, and what of its type decides how values are shown."""

    name: str
    number: int
    kind: FigureKind
    scale: int = 0
    aware: bool = True

    @property
    def is_time(self) -> bool:
        """Whether it has dates or timestamps."""
        return self.kind in ("date", "timestamp")

    def shown(self, value: Any) -> Any:
        """A plain value as the table has it."""
        if value is None or not self.is_time:
            return value
        try:
            if self.kind == "date":
                return _DAY_0 + timedelta(days=value)
            found = _TIME_0 + timedelta(microseconds=value)
            return found if self.aware else found.replace(tzinfo=None)
        except OverflowError:
            raise SearchQueryError.not_possible(
                "a figure", self.name, "it has a value before the year 1 or after the year 9999",
                "leave such rows out by a range in the query",
            ) from None  # fmt: skip

    def shown_start(self, value: Any) -> Any:
        """Where a bucket begins: the first date there is, for one that begins before it."""
        return self.shown(max(value, _EARLIEST[self.kind]) if self.is_time and value is not None else value)

    def shown_end(self, value: Any) -> Any:
        """Where a bucket ends; None, as for one without an end, where no date is as late."""
        return None if self.is_time and value is not None and value > _LATEST[self.kind] else self.shown(value)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Intervals of so many months, counted from the year 0."""

    months: int

    def number_of(self, column: FigureColumn, value: int) -> int:
        """Which interval a value lies in."""
        day = column.shown(value)
        return int(day.year * 12 + day.month - 1) // self.months

    def start(self, column: FigureColumn, number: int) -> int:
        """Where an interval begins, as a plain value; also before the year 1 and after the year 9999."""
        days = months_of(number * self.months)
        return days if column.kind == "date" else days * 86_400_000_000


def months_of(months: int) -> int:
    """The days from 1970 to the beginning of a month, counted from the year 0."""
    year, month = divmod(months, 12)
    eras, rest = divmod(year - 1, 400)  # the calendar repeats itself after 400 years of 146,097 days
    return days_of(date(rest + 1, month + 1, 1)) + eras * 146_097


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a column, with its options as plain values."""

    name: str
    column: FigureColumn
    size: int = 0
    interval: float | Decimal | Calendar = 0
    """Of a histogram; of dates in days, of timestamps in microseconds."""
    bounds: Sequence[Any] = ()
    percents: Sequence[float] = ()
    inner: Mapping[str, Figure] = field(default_factory=dict)

    def each(self) -> list[Figure]:
        """It, and all that are inside."""
        return [self, *(one for inner in self.inner.values() for one in inner.each())]

    # -- buckets ---------------------------------------------------------------------------------------------------

    @property
    def step(self) -> Fraction:
        """The interval of a histogram as it was written: 0.1 is a tenth."""
        assert not isinstance(self.interval, Calendar)
        return Fraction(as_written(self.interval))

    def key_of(self, value: Any) -> Any:
        """The key of the bucket of a histogram that a value lies in; not-a-number and infinities are their own."""
        if isinstance(self.interval, Calendar):
            return self.interval.number_of(self.column, value)
        if self.column.kind != "float":
            return math.floor(Fraction(value) / self.step)
        interval = float(self.interval)
        pieces = value / interval
        return math.floor(pieces) * interval if math.isfinite(pieces) else value

    def shown_key(self, key: Any) -> dict[str, Any]:
        """What a bucket of a histogram is called."""
        c, interval = self.column, self.interval
        if isinstance(interval, Calendar):
            return {"from": c.shown_start(interval.start(c, key)), "to": c.shown_end(interval.start(c, key + 1))}
        if c.kind == "float":
            return {"key": key}
        exact = key * self.step
        if c.kind == "decimal":
            return {"key": decimal_of(exact, max(0, -int(as_written(interval).as_tuple().exponent)))}
        return {"key": c.shown_start(exact.numerator) if exact.denominator == 1 else float(exact)}

    def shown_range(self, number: int) -> dict[str, Any]:
        """What a range is called: the n-th begins at the bound before."""
        edges = (None, *self.bounds, None)
        return {"from": self.column.shown(edges[number]), "to": self.column.shown(edges[number + 1])}

    def shown_stats(self, count: int, least: Any, most: Any, total: Any) -> dict[str, Any]:
        """Statistics; of dates, timestamps and truth values, sums mean nothing."""
        c = self.column
        shown = {"count": count, "min": c.shown(least), "max": c.shown(most)}
        if c.is_time or c.kind == "boolean":
            return shown
        return {**shown, "sum": total, "avg": average(total, count)}


def as_written(number: float | Decimal) -> Decimal:
    """A number as a decimal: a float is the shortest one that is read as it."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def decimal_of(value: Fraction, scale: int) -> Decimal:
    """A decimal with so many places, however many digits it has: arithmetic would round it."""
    return Decimal(f"{int(value * 10**scale)}e-{scale}")


def average(total: Any, count: int) -> float | None:
    """The float nearest to an average."""
    if not count:
        return None
    return total / count if isinstance(total, float) else float(Fraction(total) / count)
