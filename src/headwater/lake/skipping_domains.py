"""Domains: in what type a column's bounds and a condition's literal are compared when files are skipped.

A literal rarely has the column's exact type, and engines differ in how they bring the two together. So a literal
becomes a span ``(first, last)`` of the column's domain that is sure to hold the value any engine would compare with,
or None if that cannot be said; `skipping` then asks only questions that are safe for the whole span. The bounds in
a JSON text are brought into the same domain and made wider by whatever writers may have cut off.

    integers, booleans   int64                dates        int64, days since 1970
    floats               float64              timestamps   int64, microseconds since 1970
    decimals             decimal128(38, scale) strings     string, by code point (as UTF-8 bytes compare)

Booleans have no bounds in statistics; binary has no domain at all.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Domain", "domain_of"]

_INT64 = range(-(2**63), 2**63)
_DAY_US = 86_400_000_000
_EXACT = Context(prec=400)
_LONG_TEXT_BYTES = 32

Span = tuple[Any, Any]


@lru_cache(maxsize=1024)
def domain_of(kind: pa.DataType) -> Domain | None:
    """The domain of a column type, or None if its values cannot be compared here.

    >>> domain_of(pa.int32()).span(2.5)
    (2, 3)
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    for test, make in _DOMAINS:
        if test(kind):
            return make(kind)
    return None


class Domain:
    """How one column type is compared; ``json`` is the Arrow type its bounds are parsed as, if they have any."""

    arrow: pa.DataType = pa.int64()
    json: pa.DataType | None = pa.int64()

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind

    def span(self, value: Any) -> Span | None:
        """The literal in this domain."""
        if isinstance(value, np.generic):
            value = value.item()
        try:
            span = None if value is None else self._span(value)
        except (ArithmeticError, ValueError, TypeError):
            return None
        return None if span is None or (self.arrow == pa.int64() and not all(v in _INT64 for v in span)) else span

    def _span(self, value: Any) -> Span | None:
        raise NotImplementedError

    def point(self, value: Any) -> Any:
        """A value of the column itself, or None if it is not comparable (NaN)."""
        return value

    def from_json(self, column: pa.Array) -> pa.Array:
        """Parsed bounds in this domain."""
        return column

    def from_python(self, raw: Any, *, upper: bool) -> Any:
        """One bound as `json.loads` gives it, or None if it is not what it should be."""
        try:
            value = self._from_python(raw, upper)
        except (ArithmeticError, ValueError, TypeError):
            return None
        return None if value is None or (self.arrow == pa.int64() and value not in _INT64) else value

    def _from_python(self, raw: Any, upper: bool) -> Any:
        raise NotImplementedError

    def widen(self, low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Bounds of statistics, made to hold what a writer may have cut off."""
        return low, high


def _number(value: Any) -> int | float | Decimal | None:
    return value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


class _Integers(Domain):
    def _span(self, value: Any) -> Span | None:
        number = _number(value)
        if isinstance(number, float):  # a wide integer may be rounded to a float before it is compared
            return math.floor(math.nextafter(number, -math.inf)), math.ceil(math.nextafter(number, math.inf))
        return None if number is None else (math.floor(number), math.ceil(number))

    def _from_python(self, raw: Any, upper: bool) -> Any:
        number = _number(raw)
        return None if number is None else math.ceil(number) if upper else math.floor(number)


class _Booleans(Domain):
    json = None

    def _span(self, value: Any) -> Span | None:
        return (int(value), int(value)) if isinstance(value, bool) else None

    def point(self, value: Any) -> Any:
        return int(value)


class _Floats(Domain):
    arrow = json = pa.float64()

    def _span(self, value: Any) -> Span | None:
        number = _number(value)
        if number is None or math.isnan(number):
            return None
        near = float(number)
        if not pa.types.is_float64(self.kind):
            narrow = _narrow(np.array(near))
            return float(np.nextafter(narrow, np.float32(-np.inf))), float(np.nextafter(narrow, np.float32(np.inf)))
        if near and (isinstance(number, float) or (isinstance(number, int) and abs(number) <= 1 << 53)):
            return near, near
        # Rounded, or a zero, of which some engines hold the negative one to be smaller.
        return math.nextafter(near, -math.inf), math.nextafter(near, math.inf)

    def point(self, value: Any) -> Any:
        return None if math.isnan(value) else float(value)

    def from_json(self, column: pa.Array) -> pa.Array:
        return pc.if_else(pc.is_nan(column), None, column)

    def _from_python(self, raw: Any, upper: bool) -> Any:
        number = float(raw) if raw in ("Infinity", "-Infinity") else _number(raw)
        return None if number is None or math.isnan(number) else float(number)

    def widen(self, low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
        # A short float's shortest digits, read as a long one, lie a little beside it; and a column that is long now
        # may have been short when the file was written.
        first, last = (_step_out(bound, sign) for bound, sign in ((low, -1.0), (high, 1.0)))
        return first, last


def _step_out(bounds: pa.Array, sign: float) -> pa.Array:
    values = bounds.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.where(np.isinf(values), values, values + sign * (np.abs(values) * 2.0**-23 + 2.0**-149))
    return pa.array(moved, from_pandas=True)  # unknown came out as NaN


def _narrow(values: Any) -> Any:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


class _Decimals(Domain):
    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.arrow = self.json = pa.decimal128(38, kind.scale)

    def _span(self, value: Any) -> Span | None:
        number = _number(value)
        if number is None or not math.isfinite(number):
            return None
        if isinstance(number, float):
            ends = Decimal(math.nextafter(number, -math.inf)), Decimal(math.nextafter(number, math.inf))
        else:
            ends = Decimal(number), Decimal(number)
        return self._fit(ends[0], ROUND_FLOOR), self._fit(ends[1], ROUND_CEILING)

    def _fit(self, value: Decimal, rounding: str) -> Decimal:
        fitted = value.quantize(Decimal(1).scaleb(-self.kind.scale), rounding=rounding, context=_EXACT)
        if len(fitted.as_tuple().digits) > 38:
            raise InvalidOperation
        return fitted

    def point(self, value: Any) -> Any:
        return self._fit(value, ROUND_FLOOR)

    def _from_python(self, raw: Any, upper: bool) -> Any:
        number = _number(raw)
        return None if number is None else self._fit(Decimal(number), ROUND_CEILING if upper else ROUND_FLOOR)


class _Texts(Domain):
    arrow = json = pa.string()

    def _span(self, value: Any) -> Span | None:
        text = self._from_python(value, False)
        return None if text is None else (text, text)

    def _from_python(self, raw: Any, upper: bool) -> Any:
        return raw if isinstance(raw, str) and raw.encode() is not None else None  # half a surrogate pair raises

    def widen(self, low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
        longer = pc.binary_join_element_wise(high, "\U0010ffff", "")
        return low, pc.if_else(pc.greater_equal(pc.binary_length(high), _LONG_TEXT_BYTES), longer, high)


def _days(value: dt.date) -> int:
    return value.toordinal() - dt.date(1970, 1, 1).toordinal()


class _Dates(Domain):
    json = pa.string()

    def _span(self, value: Any) -> Span | None:
        if isinstance(value, dt.datetime):
            return _days(value) - 1, _days(value) + 2
        return (_days(value), _days(value)) if isinstance(value, dt.date) else None

    def point(self, value: Any) -> Any:
        return _days(value)

    def from_json(self, column: pa.Array) -> pa.Array:
        return column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())

    def _from_python(self, raw: Any, upper: bool) -> Any:
        return _days(dt.date.fromisoformat(raw))


class _Moments(Domain):
    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.json = pa.timestamp("us", "UTC" if kind.tz else None)

    def _span(self, value: Any) -> Span | None:
        if not isinstance(value, dt.datetime):
            value = dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else None
        if value is None:
            return None
        first = _microseconds(value)
        last = first + (1 if getattr(value, "nanosecond", 0) else 0)
        slack = 0 if (value.tzinfo is None) == (self.kind.tz is None) else _DAY_US
        return first - slack, last + slack

    def point(self, value: Any) -> Any:
        return _microseconds(value)

    def from_json(self, column: pa.Array) -> pa.Array:
        return column.cast(pa.int64())

    def _from_python(self, raw: Any, upper: bool) -> Any:
        return _microseconds(dt.datetime.fromisoformat(raw))

    def widen(self, low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
        return low, pc.add(high, 1000)


def _microseconds(value: dt.datetime) -> int:
    epoch = dt.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else dt.UTC)
    return (value - epoch) // dt.timedelta(microseconds=1)


_DOMAINS = (
    (pa.types.is_boolean, _Booleans),
    (pa.types.is_integer, _Integers),
    (pa.types.is_floating, _Floats),
    (pa.types.is_decimal, _Decimals),
    (pa.types.is_string, _Texts),
    (pa.types.is_large_string, _Texts),
    (pa.types.is_string_view, _Texts),
    (pa.types.is_date, _Dates),
    (pa.types.is_timestamp, _Moments),
)
