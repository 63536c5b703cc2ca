"""Aggregations: figures of the rows that a query matches, over the rows that are alive.

Each is a small object made by a function of this module, and may have others inside::

    ix.aggregate("refund", authors=terms("author", inner={"paid": stats("amount")}), days=date_histogram("at", "1 day"))

Figures are exact where the type of the column is: of whole numbers, decimals, dates, timestamps, truth values and
keywords. Sums of floats are rounded. Not-a-number is a value, and the largest one. ``terms`` counts every value of
every split, and not the best values of each. ``cardinality`` is an approximation, as in every search engine, and
``percentiles`` of numbers are within 1% of a value of that rank, or within 1e-9.

They are computed from the columns that an index keeps for its keyword and numeric fields, so they cost what the matches
cost (`library_figures`). Where that would not be exact, as for whole numbers beyond 2^53, the columns of the rows that
match are read from the table instead (`row_figures`).
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa

from headwater.base.durations import parse_duration_ms
from headwater.base.errors import InputError, SearchQueryError
from headwater.search.answers import remembered
from headwater.search.fields import Field
from headwater.search.figures import Calendar, Figure, FigureColumn, as_written
from headwater.search.library_figures import Extent, extents, extents_of_all, is_exact, library_figures
from headwater.search.reader import Reader
from headwater.search.request import Request, compile_query
from headwater.search.row_figures import RowFigures
from headwater.search.rows import fetch_rows
from headwater.search.values import days_of, microseconds_of

__all__ = [
    "Aggregation", "aggregate", "cardinality", "date_histogram", "histogram", "percentiles", "ranges", "stats", "terms",
]  # fmt: skip

Name = Literal["terms", "stats", "histogram", "date_histogram", "ranges", "percentiles", "cardinality"]
_DAY_MS = 86_400_000
_MIDNIGHT = time(tzinfo=UTC)
_CALENDAR = {"month": 1, "months": 1, "quarter": 3, "quarters": 3, "year": 12, "years": 12}


@dataclass(frozen=True)
class Aggregation:
    """A figure, or buckets of rows with figures inside, over one column."""

    name: Name
    column: str
    options: Mapping[str, Any] = field(default_factory=dict)
    inner: Mapping[str, Aggregation] = field(default_factory=dict)


def terms(column: str, size: int = 10, *, inner: Mapping[str, Aggregation] | None = None) -> Aggregation:
    """The most frequent values, with the number of rows of each."""
    return Aggregation("terms", column, {"size": size}, inner or {})


def stats(column: str) -> Aggregation:
    """Count, sum, minimum, maximum and average."""
    return Aggregation("stats", column)


def histogram(column: str, interval: float | Decimal, *, inner: Mapping[str, Aggregation] | None = None) -> Aggregation:
    """Rows by intervals of a number; not-a-number and infinities have buckets of their own."""
    return Aggregation("histogram", column, {"interval": interval}, inner or {})


def date_histogram(column: str, interval: str, *, inner: Mapping[str, Aggregation] | None = None) -> Aggregation:
    """Rows by intervals of a date or timestamp: ``"1 hour"``, ``"7 days"``, ``"1 month"``, ``"1 year"``.

    Buckets of a length have the ``key`` at which they begin, those of months and years ``from`` and ``to``.
    """
    return Aggregation("date_histogram", column, {"interval": interval}, inner or {})


def ranges(column: str, bounds: Sequence[Any], *, inner: Mapping[str, Aggregation] | None = None) -> Aggregation:
    """Rows below the first bound, from it to below the second, and so on, and from the last one on."""
    return Aggregation("ranges", column, {"bounds": tuple(bounds)}, inner or {})


def percentiles(column: str, percents: Sequence[float] = (1, 5, 25, 50, 75, 95, 99)) -> Aggregation:
    """Approximate percentiles."""
    return Aggregation("percentiles", column, {"percents": tuple(percents)})


def cardinality(column: str) -> Aggregation:
    """About how many different values there are."""
    return Aggregation("cardinality", column)


def aggregate(reader: Reader, query: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the rows that match a query, by name."""
    if not wanted:
        raise InputError.bad_argument("wanted", wanted, "figures by name, such as authors=terms('author')")
    figures = {name: _checked(reader, name, one) for name, one in wanted.items()}
    key = (reader.key, query, repr(wanted))
    return copy.deepcopy(remembered(key, lambda: _answered(reader, query, figures), _bytes_of))


def _answered(reader: Reader, query: str, figures: Mapping[str, Figure]) -> dict[str, Any]:
    compiled, _ = compile_query(reader, Request(query=query))
    known = extents_of_all(reader, list(figures.values()))
    quick, inexact = _parted(figures, known)
    if inexact:  # by rows that may not match
        known = extents(reader, compiled, list(figures.values()))
        quick, inexact = _parted(figures, known)
    found: dict[str, Any] = {}
    if quick:
        found = library_figures(reader, compiled, quick, known, lambda figure: _without_rows(reader, figure))
    if inexact:
        columns = [one.column for figure in inexact.values() for one in figure.each()]
        table = fetch_rows(reader, reader.every(compiled), list(dict.fromkeys(c.name for c in columns)))
        rows = RowFigures(table, columns)
        found.update((name, rows.of(figure)) for name, figure in inexact.items())
    return {name: found[name] for name in figures}


def _parted(
    figures: Mapping[str, Figure], known: Mapping[str, Extent | None]
) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """The figures that the library computes exactly, and the others."""
    exact = {name: all(is_exact(one, known[one.column.name]) for one in f.each()) for name, f in figures.items()}
    return {n: f for n, f in figures.items() if exact[n]}, {n: f for n, f in figures.items() if not exact[n]}


def _without_rows(reader: Reader, figure: Figure) -> Any:
    columns = [one.column for one in figure.each()]
    schema = pa.schema([reader.base.schema.field(c.name).arrow for c in {c.name: c for c in columns}.values()])
    return RowFigures(schema.empty_table(), columns).of(figure)


def _bytes_of(figures: Any) -> int:
    if isinstance(figures, dict):
        return 300 + sum(map(_bytes_of, figures.values()))
    return 100 + sum(map(_bytes_of, figures)) if isinstance(figures, list) else 50


# -- what is asked, checked ------------------------------------------------------------------------------------------


def _checked(reader: Reader, name: str, asked: Any) -> Figure:
    if not isinstance(asked, Aggregation):
        raise InputError.bad_argument(name, asked, "what a function of headwater.search.aggregation gives")
    column = _column(reader, asked)
    inner = {key: _checked(reader, key, one) for key, one in asked.inner.items()}
    options = asked.options
    match asked.name:
        case "terms":
            size = options["size"]
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise InputError.bad_argument("size", size, "a number of values, from 1 on")
            return Figure("terms", column, size=size, inner=inner)
        case "histogram":
            return Figure("histogram", column, interval=_interval(column, options["interval"]), inner=inner)
        case "date_histogram":
            return Figure("date_histogram", column, interval=_length(column, str(options["interval"])), inner=inner)
        case "ranges":
            bounds = [_bound(column, one) for one in options["bounds"]]
            if not bounds or any(not low < high for low, high in itertools.pairwise(bounds)):
                raise InputError.bad_argument("bounds", list(options["bounds"]), "values that grow")
            return Figure("ranges", column, bounds=bounds, inner=inner)
        case "percentiles":
            return Figure("percentiles", column, percents=[_percent(one) for one in options["percents"]])
    return Figure(asked.name, column)


_FITTING = {
    "text": "index the column as keyword",
    "keyword": "use terms() or cardinality()",
    "boolean": "use terms(), stats() or cardinality()",
}


def _column(reader: Reader, asked: Aggregation) -> FigureColumn:
    fields, base = reader.meant.fields, reader.base
    number = fields.number(asked.column)
    if number is None:
        raise SearchQueryError.not_indexed(asked.column, fields.columns)
    f: Field = fields[number]
    counted = asked.name in ("terms", "cardinality")
    fits = counted or (asked.name == "stats" if f.kind == "boolean" else f.is_numeric)
    if not (f.is_numeric or f.kind == "keyword") or not fits:
        hint = _FITTING.get(f.kind, "use count()")
        raise SearchQueryError.not_possible(asked.name, f.column, f"it is of kind {f.kind}", hint)
    if asked.name == "date_histogram" and f.kind not in ("date", "timestamp"):
        raise SearchQueryError.not_possible(asked.name, f.column, f"it is of kind {f.kind}", "use histogram()")
    if asked.name == "histogram" and f.kind in ("date", "timestamp"):
        raise SearchQueryError.not_possible(asked.name, f.column, f"it is of kind {f.kind}", "use date_histogram()")
    dtype = base.schema.field(f.column, base.where).arrow.type
    if pa.types.is_decimal(dtype):
        return FigureColumn(f.column, number, "decimal", scale=dtype.scale)
    aware = not pa.types.is_timestamp(dtype) or dtype.tz is not None
    return FigureColumn(f.column, number, "text" if f.kind == "keyword" else f.kind, aware=aware)  # type: ignore[arg-type]


def _interval(column: FigureColumn, given: Any) -> float | Decimal:
    if not _is_number(given) or not given > 0 or not math.isfinite(given):
        raise InputError.bad_argument("interval", given, "a number above 0")
    return float(given) if column.kind == "float" else given


def _is_number(given: Any) -> bool:
    """Whether it is one, and not so large that no float is near it."""
    if not isinstance(given, int | float | Decimal) or isinstance(given, bool):
        return False
    try:
        float(given)
    except OverflowError:
        return False
    return True


def _length(column: FigureColumn, text: str) -> int | Calendar:
    amount, _, unit = text.strip().partition(" ")
    if unit.strip().lower() in _CALENDAR and amount.isascii() and amount.isdigit() and int(amount):
        return Calendar(int(amount) * _CALENDAR[unit.strip().lower()])
    length_ms = parse_duration_ms(text, "interval")
    if column.kind == "date" and length_ms % _DAY_MS:
        raise InputError.bad_argument("interval", text, "a length of whole days, since the column has dates")
    return length_ms // _DAY_MS if column.kind == "date" else length_ms * 1_000


def _bound(column: FigureColumn, value: Any) -> Any:
    """A bound of a range as a plain value."""
    if column.kind == "date" and isinstance(value, date) and not isinstance(value, datetime):
        return days_of(value)
    if column.kind == "timestamp" and isinstance(value, date):
        return microseconds_of(value if isinstance(value, datetime) else datetime.combine(value, _MIDNIGHT))
    if column.is_time or not _is_number(value) or math.isnan(value):
        expected = {"date": "dates", "timestamp": "datetimes"}.get(column.kind, "numbers")
        raise InputError.bad_argument("bounds", value, f"{expected}, as the field `{column.name}` has them")
    if column.kind == "float":
        return float(value)
    return as_written(value) if column.kind == "decimal" else value


def _percent(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 100:
        raise InputError.bad_argument("percents", value, "numbers from 0 to 100")
    return float(value)
