"""Aggregations: figures of the rows that a query matches, without reading them.

They are computed from the columns that an index keeps for its keyword and numeric fields, over the rows that are alive,
so they cost what the matches cost. Each is a small object made by a function of this module, and may have others
inside::

    ix.aggregate("refund", authors=terms("author", inner={"paid": stats("amount")}), days=date_histogram("at", "1 day"))

``terms`` counts every value of every split, so its figures are exact, and not those of the best values of each split.
Sums, averages and percentiles are those of 64-bit floats; cardinality and percentiles are approximations, as their
names say in every search engine.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from headwater.base.durations import parse_duration_ms
from headwater.base.errors import InputError, SearchQueryError
from headwater.search.answers import remembered
from headwater.search.fields import Field
from headwater.search.reader import Reader
from headwater.search.request import Request, compile_query
from headwater.search.values import days_of, microseconds_of, show_value

__all__ = [
    "Aggregation", "aggregate", "cardinality", "date_histogram", "histogram", "percentiles", "ranges", "stats", "terms",
]  # fmt: skip

Name = Literal["terms", "stats", "histogram", "date_histogram", "ranges", "percentiles", "cardinality"]
_EVERY = 10_000_000
_DAY_MS = 86_400_000
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


def histogram(column: str, interval: float, *, inner: Mapping[str, Aggregation] | None = None) -> Aggregation:
    """Rows by intervals of a number."""
    return Aggregation("histogram", column, {"interval": interval}, inner or {})


def date_histogram(column: str, interval: str, *, inner: Mapping[str, Aggregation] | None = None) -> Aggregation:
    """Rows by intervals of a date or timestamp: ``"1 hour"``, ``"7 days"``, ``"1 month"``, ``"1 year"``."""
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
    for name, one in wanted.items():
        if not isinstance(one, Aggregation):
            raise InputError.bad_argument(name, one, "what a function of headwater.search.aggregation gives")
    key = (reader.key, query, repr(wanted))
    return copy.deepcopy(remembered(key, lambda: _answered(reader, query, wanted), _bytes_of))


def _answered(reader: Reader, query: str, wanted: Mapping[str, Aggregation]) -> dict[str, Any]:
    compiled, _ = compile_query(reader, Request(query=query))
    translated = {name: _translate(reader, compiled, one) for name, one in wanted.items()}
    found = reader.aggregate(compiled, {name: request for name, (request, _) in translated.items()})
    return {name: read(found[name]) for name, (_, read) in translated.items()}


def _bytes_of(figures: Any) -> int:
    if isinstance(figures, dict):
        return 300 + sum(map(_bytes_of, figures.values()))
    return 100 + sum(map(_bytes_of, figures)) if isinstance(figures, list) else 50


_Read = Callable[[Mapping[str, Any]], Any]


def _translate(reader: Reader, query: Any, asked: Aggregation) -> tuple[dict[str, Any], _Read]:
    """The library's form of an aggregation, and how its answer is read."""
    f, name = _fast_field(reader, asked)
    inside = {key: _translate(reader, query, one) for key, one in asked.inner.items()}

    def finish(kind: str, options: Mapping[str, Any], read: _Read) -> tuple[dict[str, Any], _Read]:
        request: dict[str, Any] = {kind: {"field": name, **options}}
        if inside:
            request["aggs"] = {key: made for key, (made, _) in inside.items()}
        return request, read

    def bucket(found: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
        return {**keys, "rows": int(found["doc_count"]), **{key: read(found[key]) for key, (_, read) in inside.items()}}

    def by_key(found: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [bucket(one, key=show_value(f, one["key"])) for one in found["buckets"]]

    match asked.name:
        case "terms":
            size = asked.options["size"]
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise InputError.bad_argument("size", size, "a number of values, from 1 on")
            return finish("terms", {"size": size, "segment_size": _EVERY}, by_key)
        case "stats":
            return finish("stats", {}, lambda found: _read_stats(f, found))
        case "histogram":
            interval = asked.options["interval"]
            if isinstance(interval, bool) or not isinstance(interval, int | float) or not interval > 0:
                raise InputError.bad_argument("interval", interval, "a number above 0")
            return finish("histogram", {"interval": float(interval), "min_doc_count": 1}, by_key)
        case "date_histogram":
            return _by_time(reader, query, f, name, asked, finish, bucket, by_key)
        case "ranges":
            bounds = [_bound(f, one) for one in asked.options["bounds"]]
            return _by_ranges(f, bounds, finish, bucket)
        case "percentiles":
            options = {"percents": [float(p) for p in asked.options["percents"]], "keyed": False}
            return finish("percentiles", options, lambda found: _read_percentiles(f, found))
        case "cardinality":
            return finish("cardinality", {}, lambda found: round(found["value"] or 0))
    raise AssertionError(asked.name)


def _fast_field(reader: Reader, asked: Aggregation) -> tuple[Field, str]:
    fields = reader.meant.fields
    number = fields.number(asked.column)
    if number is None:
        raise SearchQueryError.not_indexed(asked.column, fields.columns)
    f = fields[number]
    counted = asked.name in ("terms", "cardinality")
    if not (f.is_numeric or (f.kind == "keyword" and counted)):
        hint = {"text": "index the column as keyword", "keyword": "use terms() or cardinality()"}.get(
            f.kind, "use count()"
        )
        raise SearchQueryError.not_possible(asked.name, f.column, f"it is of kind {f.kind}", hint)
    if asked.name == "date_histogram" and f.kind not in ("date", "timestamp"):
        raise SearchQueryError.not_possible(asked.name, f.column, f"it is of kind {f.kind}", "use histogram()")
    return f, fields.name(number)


def _by_time(
    reader: Reader, query: Any, f: Field, name: str, asked: Aggregation, finish: Any, bucket: Any, by_key: _Read
) -> tuple[dict[str, Any], _Read]:
    text = str(asked.options["interval"])
    amount, _, unit = text.strip().partition(" ")
    if unit.strip().lower() in _CALENDAR and amount.isdigit() and int(amount):
        months = int(amount) * _CALENDAR[unit.strip().lower()]
        found = reader.aggregate(query, {"s": {"stats": {"field": name}}})["s"]
        if not found["count"]:
            return _by_ranges(f, [], finish, bucket)
        return _by_ranges(f, _month_starts(f, found["min"], found["max"], months), finish, bucket, least=1)
    length_ms = parse_duration_ms(text, "interval")
    if f.kind == "date" and length_ms % _DAY_MS:
        raise InputError.bad_argument("interval", text, "a length of whole days, since the column has dates")
    interval = length_ms // _DAY_MS if f.kind == "date" else length_ms * 1_000
    return finish("histogram", {"interval": float(interval), "min_doc_count": 1}, by_key)  # type: ignore[no-any-return]


def _month_starts(f: Field, least: float, most: float, months: int) -> list[int]:
    """The beginnings of months that rows between two values may lie in, as the index has them."""
    first, last = show_value(f, least), show_value(f, most)
    number = (first.year * 12 + first.month - 1) // months * months
    end = last.year * 12 + last.month - 1
    starts = []
    while number <= end + months:
        start = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
        starts.append(days_of(start.date()) if f.kind == "date" else microseconds_of(start))
        number += months
    return starts


def _by_ranges(
    f: Field, bounds: Sequence[float], finish: Any, bucket: Any, *, least: int = 0
) -> tuple[dict[str, Any], _Read]:
    if list(bounds) != sorted(set(bounds)):
        raise InputError.bad_argument("bounds", list(bounds), "values that grow")
    edges = [None, *bounds, None]
    pieces = [
        {key: float(edge) for key, edge in (("from", low), ("to", high)) if edge is not None}
        for low, high in itertools.pairwise(edges)
    ]

    def read(found: Mapping[str, Any]) -> list[dict[str, Any]]:
        made = []
        for one in found["buckets"]:
            low, high = (None if one.get(e) is None else show_value(f, one[e]) for e in ("from", "to"))
            if int(one["doc_count"]) >= least:
                made.append((one.get("from", -math.inf), bucket(one, **{"from": low, "to": high})))
        return [each for _, each in sorted(made, key=lambda pair: pair[0])]

    return finish("range", {"ranges": pieces}, read)  # type: ignore[no-any-return]


def _bound(f: Field, value: Any) -> float:
    if f.kind == "date" and hasattr(value, "year"):
        return days_of(value)
    if f.kind == "timestamp" and isinstance(value, datetime):
        return microseconds_of(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError.bad_argument("bounds", value, f"values of the field `{f.column}`, which is of kind {f.kind}")
    return value


def _read_stats(f: Field, found: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"count": int(found["count"]), "min": show_value(f, found["min"]), "max": show_value(f, found["max"])}
    return shown if f.kind in ("date", "timestamp") else {**shown, "sum": found["sum"], "avg": found["avg"]}


def _read_percentiles(f: Field, found: Mapping[str, Any]) -> dict[float, Any]:
    return {float(one["key"]): show_value(f, one["value"]) for one in found["values"]}
