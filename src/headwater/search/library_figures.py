"""Figures that the library computes, where they are exact.

The library reads numbers from columns of the index and counts in 64-bit floats, which takes a few nanoseconds a row. It
rounds whole numbers from 2^53 on, leaves not-a-number out of some figures and in others, cuts the bounds of ranges to
whole numbers, and fails on percentiles of infinities. So it is first asked for the least and the greatest value of each
column (`Extent`), which even with rounding say whether all lie where its arithmetic is exact: once for all rows of a
reader, and for those that match a query only where some others do not lie there. Where the answer is no (`is_exact`),
figures are computed from the rows.

Approximations are only those that `aggregation` announces: `cardinality`, and `percentiles` of numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from headwater.search.fields import ODD, Fields
from headwater.search.figures import Calendar, Figure, FigureColumn, as_written, decimal_of
from headwater.search.reader import Reader

__all__ = ["Extent", "extents", "extents_of_all", "is_exact", "library_figures"]

_EVERY = 10_000_000
_EXACT = 2**53
"""Whole numbers below it are floats, and so are their sums and differences as long as these are below it."""
_DIGITS = 10**15
"""Decimals with so few digits are told apart, and given back, by the floats nearest to them."""
_MOST_SPREAD = 5e8
"""The library's percentiles tell values apart from 1e-9 to this."""
_MOST_MONTHS = 2_000


@dataclass(frozen=True, slots=True)
class Extent:
    """What the library says of a column's values among the rows that match, rounded to floats."""

    count: int
    least: float
    most: float
    total: float

    @property
    def largest(self) -> Fraction:
        """The largest distance from 0."""
        return Fraction(max(abs(self.least), abs(self.most)))


def extents_of_all(reader: Reader, figures: Sequence[Figure]) -> dict[str, Extent | None]:
    """The extents of all rows, which the reader keeps."""
    import tantivy

    unknown = [one for figure in figures for one in figure.each() if one.column.name not in reader.extents]
    if unknown:
        reader.extents.update(extents(reader, tantivy.Query.all_query(), unknown))
    return reader.extents


def extents(reader: Reader, query: Any, figures: Sequence[Figure]) -> dict[str, Extent | None]:
    """The extent of each column that some figures have; None where the index does not have all of its values."""
    import tantivy

    columns = {one.column.name: one.column for figure in figures for one in figure.each()}
    asked = {c.name: c for c in columns.values() if c.kind not in ("text", "boolean")}
    request = {name: {"stats": {"field": Fields.name(c.number)}} for name, c in asked.items()}
    told = reader.aggregate(query, request) if request else {}
    found: dict[str, Extent | None] = {}
    for name, c in columns.items():
        if name in told:
            s = told[name]
            found[name] = Extent(int(s["count"]), s["min"] or 0.0, s["max"] or 0.0, s["sum"])
        elif c.kind == "text":
            long = tantivy.Query.term_query(reader.schema, ODD, str(c.number), "basic")
            both = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, long)])
            found[name] = Extent(0, 0.0, 0.0, 0.0) if not reader.count(both) else None
        else:
            found[name] = Extent(0, 0.0, 0.0, 0.0)
    return found


def is_exact(figure: Figure, extent: Extent | None) -> bool:
    """Whether the library computes a figure as `row_figures` does; of floats, but for the rounding of sums."""
    c = figure.column
    if extent is None:
        return False
    if c.kind in ("text", "boolean") or not extent.count:
        return True
    if c.kind == "float":
        return math.isfinite(extent.total) and _exact_floats(figure, extent)
    scaled = extent.largest * 10**c.scale
    if scaled >= (_DIGITS if c.kind == "decimal" else _EXACT):
        return False
    match figure.name:
        case "stats":
            # Floats are added with compensation, so that a sum is off by few units in its last place.
            most = _EXACT if c.kind == "integer" else _EXACT // 64
            return c.is_time or extent.count * scaled < most
        case "histogram" | "date_histogram":
            if isinstance(figure.interval, Calendar):
                return len(_month_numbers(figure, extent)) <= _MOST_MONTHS
            return figure.step.denominator == 1 and figure.step < _EXACT
        case "ranges":
            return _exact_bounds(figure)
        case "percentiles":
            return c.kind == "integer" or (c.kind == "decimal" and extent.largest < _MOST_SPREAD)
    return True


def _exact_floats(figure: Figure, extent: Extent) -> bool:
    match figure.name:
        case "histogram":
            assert not isinstance(figure.interval, Calendar)
            return math.isfinite(float(extent.largest) / float(figure.interval))
        case "ranges":
            return all(map(math.isfinite, figure.bounds))
        case "percentiles":
            return extent.largest < _MOST_SPREAD
    return True


def _exact_bounds(figure: Figure) -> bool:
    """Whether floats are on the same side of the bounds as the values that they stand for."""
    if not all(map(math.isfinite, figure.bounds)):
        return False
    bounds = _library_bounds(figure)
    if figure.column.kind == "decimal":
        return all(as_written(near) == one for near, one in zip(bounds, figure.bounds, strict=True))
    return all(abs(one) < _EXACT for one in bounds) and all(a < b for a, b in itertools.pairwise(bounds))


def _library_bounds(figure: Figure) -> list[float]:
    """The bounds as the library may have them: a whole number reaches a fraction where it reaches the next one."""
    if figure.column.kind != "integer":
        return [float(one) for one in figure.bounds]
    return [math.ceil(one) for one in figure.bounds]


def _month_numbers(figure: Figure, extent: Extent) -> range:
    """The intervals of a calendar that have all values."""
    assert isinstance(figure.interval, Calendar)
    first, last = (figure.interval.number_of(figure.column, int(one)) for one in (extent.least, extent.most))
    return range(first, last + 1)


# -- asking, and reading the answers ---------------------------------------------------------------------------------

_Read = Callable[[Mapping[str, Any]], Any]
_Empty = Callable[[Figure], Any]


def library_figures(
    reader: Reader,
    query: Any,
    figures: Mapping[str, Figure],
    known: Mapping[str, Extent | None],
    empty: _Empty,
) -> dict[str, Any]:
    """Figures for which `is_exact` says yes; ``empty`` gives the figure of no rows."""
    made = {name: _translated(figure, known, empty) for name, figure in figures.items()}
    request = {name: request for name, (request, _) in made.items()}
    found = reader.aggregate(query, request)
    return {name: read(found[name]) for name, (_, read) in made.items()}


def _translated(figure: Figure, known: Mapping[str, Extent | None], empty: _Empty) -> tuple[dict[str, Any], _Read]:
    """The library's form of a figure, and how its answer is read."""
    c, extent = figure.column, known[figure.column.name]
    inside = {name: _translated(inner, known, empty) for name, inner in figure.inner.items()}

    def asked(kind: str, **options: Any) -> dict[str, Any]:
        request: dict[str, Any] = {kind: {"field": Fields.name(c.number), **options}}
        if inside:
            request["aggs"] = {name: one for name, (one, _) in inside.items()}
        return request

    def bucket(name: Mapping[str, Any], found: Mapping[str, Any] | None) -> dict[str, Any]:
        if found is None:
            return {**name, "rows": 0, **{key: empty(inner) for key, inner in figure.inner.items()}}
        return {**name, "rows": int(found["doc_count"]), **{key: read(found[key]) for key, (_, read) in inside.items()}}

    match figure.name:
        case "stats" if c.kind == "boolean":
            return asked("terms", size=2), lambda found: _truth_stats(figure, found)
        case "stats":
            return asked("stats"), lambda found: _stats(figure, found)
        case "cardinality":
            return asked("cardinality"), lambda found: round(found["value"] or 0)
        case "percentiles":
            options = {"percents": [float(p) for p in figure.percents], "keyed": False}
            return asked("percentiles", **options), lambda found: _percentiles(figure, found)
        case "terms":
            return asked("terms", size=figure.size, segment_size=_EVERY), lambda found: [
                bucket({"key": c.shown(_plain(c, one["key"]))}, one) for one in found["buckets"]
            ]
        case "ranges":
            bounds = _library_bounds(figure)
            names = [figure.shown_range(n) for n in range(len(bounds) + 1)]
            return asked("range", ranges=_pieces(bounds)), lambda found: [
                bucket(name, one) for name, one in zip(names, _in_order(found, bounds), strict=True)
            ]
    if isinstance(figure.interval, Calendar):
        assert extent is not None
        numbers = _month_numbers(figure, extent) if extent.count else range(0)
        starts = [float(figure.interval.start(c, number)) for number in numbers[1:]]
        return asked("range", ranges=_pieces(starts)), lambda found: [
            bucket(figure.shown_key(number), one)
            for number, one in zip(numbers, _in_order(found, starts), strict=False)
            if one is not None and one["doc_count"]
        ]

    def key(found: Any) -> Any:
        return float(found) if c.kind == "float" else round(Fraction(found) / figure.step)

    return asked("histogram", interval=float(figure.interval), min_doc_count=1), lambda found: [
        bucket(figure.shown_key(key(one["key"])), one) for one in found["buckets"]
    ]


def _pieces(bounds: Sequence[float]) -> list[dict[str, float]]:
    edges = (None, *bounds, None)
    return [
        {name: float(edge) for name, edge in (("from", low), ("to", high)) if edge is not None}
        for low, high in itertools.pairwise(edges)
    ]


def _in_order(found: Mapping[str, Any], bounds: Sequence[float]) -> list[Mapping[str, Any] | None]:
    """The library's buckets by their lower bounds; None for one that it does not give."""
    by_start = {one.get("from"): one for one in found["buckets"]}
    return [by_start.get(start) for start in (None, *bounds)]


def _plain(c: FigureColumn, value: Any) -> Any:
    """A value of the library as a plain value."""
    match c.kind:
        case "decimal":
            return None if value is None else decimal_of(Fraction(as_written(float(value))), c.scale)
        case "boolean":
            return bool(value)
        case "float":
            return None if value is None else float(value)  # which the library writes as a whole number if it is one
        case "text":
            return value
    return None if value is None else int(value)


def _stats(figure: Figure, found: Mapping[str, Any]) -> dict[str, Any]:
    c, total = figure.column, found["sum"]
    if c.kind == "integer":
        total = int(total)
    elif c.kind == "decimal":
        total = Decimal(f"{round(Fraction(total) * 10**c.scale)}e-{c.scale}")
    return figure.shown_stats(int(found["count"]), _plain(c, found["min"]), _plain(c, found["max"]), total)


def _truth_stats(figure: Figure, found: Mapping[str, Any]) -> dict[str, Any]:
    counts = {bool(one["key"]): int(one["doc_count"]) for one in found["buckets"]}
    return figure.shown_stats(sum(counts.values()), min(counts, default=None), max(counts, default=None), None)


def _percentiles(figure: Figure, found: Mapping[str, Any]) -> dict[float, Any]:
    values = {float(one["key"]): one["value"] for one in found["values"]}
    return {p: None if math.isnan(values[float(p)]) else values[float(p)] for p in figure.percents}
