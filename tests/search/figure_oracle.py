"""Figures of rows in plain Python, and how the answers of an index are compared with them.

Values are those that people see, and a bucket is a list of rows: nothing is shared with what is tested.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from headwater.search.aggregation import Aggregation

__all__ = ["check"]

Row = dict[str, Any]
_UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "minute": timedelta(minutes=1)}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def check(asked: Aggregation, found: Any, rows: Sequence[Row]) -> None:
    """Compare an answer with the figure of some rows."""
    values = [row[asked.column] for row in rows if row[asked.column] is not None]
    match asked.name:
        case "stats":
            _check_stats(found, values)
        case "cardinality":
            different = len({_same(v) for v in values})
            assert abs(found - different) <= 0.05 * different, (asked, found, different)
        case "percentiles":
            _check_percentiles(asked, found, values)
        case "terms":
            _check_terms(asked, found, rows)
        case "ranges":
            _check_buckets(asked, found, _ranges(asked, rows))
        case _:
            groups: dict[Any, tuple[Any, list[Row]]] = {}
            for row in rows:
                if row[asked.column] is not None:
                    number = _place(asked, row[asked.column])
                    groups.setdefault(_order(number), (number, []))[1].append(row)
            _check_buckets(
                asked, found, [(_named(asked, number), mine) for _, (number, mine) in sorted(groups.items())]
            )


def _order(value: Any) -> Any:
    return (1, 0) if _is_nan(value) else (0, value)


def _same(value: Any) -> Any:
    return "nan" if _is_nan(value) else value


def _equal(found: Any, wanted: Any) -> bool:
    return type(found) is type(wanted) and (found == wanted or (_is_nan(found) and _is_nan(wanted)))


def _check_stats(found: dict[str, Any], values: list[Any]) -> None:
    least, most = (min(values, key=_order), max(values, key=_order)) if values else (None, None)
    assert found["count"] == len(values)
    assert _equal(found["min"], least) and _equal(found["max"], most), (found, least, most)
    if "sum" not in found:
        assert all(isinstance(v, date | bool) for v in values)
        return
    if not values:
        assert found["sum"] == 0 and found["avg"] is None
    elif isinstance(values[0], float):
        added = _float_sum(values)
        near = 1e-9 * max(map(abs, values)) * len(values) if math.isfinite(added) else 0.0
        assert _equal(found["sum"], added) or abs(found["sum"] - added) <= near, (found, added)
        assert _equal(found["avg"], added / len(values)) or abs(found["avg"] - added / len(values)) <= near
    else:
        total = sum(map(Fraction, values), Fraction(0))
        assert type(found["sum"]) is type(values[0]) and Fraction(found["sum"]) == total, (found, total)
        assert found["avg"] == float(total / len(values))


def _float_sum(values: list[float]) -> float:
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return math.nan
    if math.inf in values or -math.inf in values:
        return math.inf if math.inf in values else -math.inf
    total = sum(map(Fraction, values), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _check_percentiles(asked: Aggregation, found: dict[float, Any], values: list[Any]) -> None:
    percents = [float(p) for p in asked.options["percents"]]
    assert list(found) == percents
    ordered = sorted(values, key=_order)
    for percent in percents:
        if not values:
            assert found[percent] is None
            continue
        wanted = ordered[math.floor(Fraction(percent) / 100 * (len(values) - 1))]
        if _equal(found[percent], wanted):
            continue
        assert not isinstance(wanted, date), (percent, found, wanted)
        near = max(1e-9, 0.0101 * abs(float(wanted)))
        assert abs(float(found[percent]) - float(wanted)) <= near, (percent, found, wanted)


def _check_terms(asked: Aggregation, found: list[Row], rows: Sequence[Row]) -> None:
    counts = Counter(_same(row[asked.column]) for row in rows if row[asked.column] is not None)
    assert [one["rows"] for one in found] == sorted(counts.values(), reverse=True)[: asked.options["size"]]
    assert len({_same(one["key"]) for one in found}) == len(found)
    for one in found:
        mine = [row for row in rows if row[asked.column] is not None and _same(row[asked.column]) == _same(one["key"])]
        assert mine and _equal(one["key"], mine[0][asked.column]), one["key"]
        _check_inside(asked, one, {"key"}, mine)


def _check_buckets(asked: Aggregation, found: list[Row], wanted: Sequence[tuple[Row, list[Row]]]) -> None:
    shown = [{k: v for k, v in one.items() if k in ("key", "from", "to")} for one in found]
    assert len(shown) == len(wanted), (asked, shown, [name for name, _ in wanted])
    for one, (name, mine), full in zip(shown, wanted, found, strict=True):
        assert one.keys() == name.keys() and all(_near(one[k], name[k]) for k in one), (asked, one, name)
        _check_inside(asked, full, name.keys(), mine)


def _near(found: Any, wanted: Any) -> bool:
    if isinstance(found, float):
        return _equal(found, wanted) or math.isclose(found, wanted, rel_tol=1e-12)
    if isinstance(found, Decimal):
        return Fraction(found) == Fraction(_as(found, wanted) if isinstance(wanted, float) else wanted)
    return bool(found == wanted) and isinstance(found, date) == isinstance(wanted, date)


def _check_inside(asked: Aggregation, bucket: Row, names: Any, rows: list[Row]) -> None:
    assert bucket["rows"] == len(rows), (asked, bucket, len(rows))
    assert bucket.keys() - {*names} == {"rows", *asked.inner}
    for name, inner in asked.inner.items():
        check(inner, bucket[name], rows)


def _as(value: Any, bound: Any) -> Any:
    """To a decimal, a bound is what was written, and not the binary fraction next to it."""
    return Decimal(str(bound)) if isinstance(value, Decimal) else bound


def _ranges(asked: Aggregation, rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    edges = [None, *asked.options["bounds"], None]

    def holds(value: Any, low: Any, high: Any) -> bool:
        if value is None or (high is not None and (_is_nan(value) or value >= _as(value, high))):
            return False
        return low is None or _is_nan(value) or bool(value >= _as(value, low))

    return [
        ({"from": low, "to": high}, [row for row in rows if holds(row[asked.column], low, high)])
        for low, high in itertools.pairwise(edges)
    ]


# -- intervals -------------------------------------------------------------------------------------------------------


def _place(asked: Aggregation, value: Any) -> Any:
    """The number of the interval that a value lies in."""
    interval = asked.options["interval"]
    if isinstance(value, float):
        return math.floor(value / interval) if math.isfinite(value / interval) else value
    if not isinstance(value, date):
        return math.floor(Fraction(value) / Fraction(str(interval)))
    amount, unit = interval.split()
    unit = unit.removesuffix("s")
    if unit in _MONTHS:
        return (value.year * 12 + value.month - 1) // (int(amount) * _MONTHS[unit])
    return (value - _epoch(value)) // (int(amount) * _UNITS[unit])


def _epoch(value: date) -> Any:
    if not isinstance(value, datetime):
        return date(1970, 1, 1)
    return datetime(1970, 1, 1, tzinfo=UTC if value.tzinfo else None)


def _named(asked: Aggregation, number: Any) -> Row:
    """What the bucket of an interval is called."""
    interval = asked.options["interval"]
    if asked.name == "histogram":
        return {"key": number if isinstance(number, float) else number * Fraction(str(interval))}
    example = asked.options["example"]
    amount, unit = interval.split()
    unit = unit.removesuffix("s")
    if unit not in _MONTHS:
        try:
            return {"key": _epoch(example) + number * int(amount) * _UNITS[unit]}
        except OverflowError:
            return {"key": _first(example)}
    months = int(amount) * _MONTHS[unit]
    begin, end = (_month(example, n * months) for n in (number, number + 1))
    return {"from": begin or _first(example), "to": end}


def _first(example: date) -> date:
    return example.min.replace(tzinfo=example.tzinfo) if isinstance(example, datetime) else date.min


def _month(example: date, months: int) -> date | None:
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        return None
    return _first(example).replace(year=year, month=month + 1)
