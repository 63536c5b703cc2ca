"""Values as text: as Spark prints them for people, and as JSON for programs.

The problem: Arrow holds values that Python objects cannot carry (a timestamp in the year 12000, a duration of 10,000
years), and prints the others in its own way. The idea: a column is spelled at once, from its integers where it is about
time; nested columns are put together from the spelled columns inside them. What the two spellings share, the walk
through the types, is `spell`; what they differ in is a `Spelling`.

As text (`TEXT`): ``1.0E10``, ``2024-05-01 12:00:00.5`` (an instant in UTC), ``X'00FF'``, ``[1, null]``, ``{a -> 1}``,
``{1, x}``. As JSON (`JSON`): decimals are text, so that no digit is lost; NaN and the infinities are text, because JSON
has no such numbers; times are ISO 8601, instants end in Z; binary is base64; a map with text keys is an object, and any
other map a list of pairs. A null is None in both.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.sql.java_numbers import java_text

__all__ = ["JSON", "TEXT", "Spelling", "spell"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_SECONDS = 86_400


class Spelling(Protocol):
    """How single values and nested ones are written; no method sees a null, but inside nested values it is None."""

    def truth(self, value: bool) -> object: ...
    def whole(self, value: int) -> object: ...
    def real(self, value: float) -> object: ...
    def single(self, value: float) -> object: ...
    def decimal(self, value: Decimal) -> object: ...
    def binary(self, value: bytes) -> object: ...
    def moment(self, ticks: int, per_second: int, *, zoned: bool) -> object: ...
    def sequence(self, items: list[Any]) -> object: ...
    def struct(self, names: Sequence[str], values: Sequence[Any]) -> object: ...
    def mapping(self, pairs: list[tuple[Any, Any]], *, textual: bool) -> object: ...


def spell(column: pa.Array | pa.ChunkedArray, spelling: Spelling) -> list[Any]:
    """The values of a column, spelled; None where it is null.

    >>> spell(pa.array([[1.0, None], None]), TEXT)
    ['[1.0, null]', None]
    >>> spell(pa.array([[1.0, None], None]), JSON)
    [[1.0, None], None]
    """
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in spell(chunk, spelling)]
    kind, t = column.type, pa.types
    if isinstance(column, pa.ExtensionArray):
        return spell(column.storage, spelling)
    if t.is_dictionary(kind):
        return spell(column.dictionary_decode(), spelling)
    if t.is_struct(kind):
        return _structs(column, spelling)
    if t.is_map(kind):
        return _maps(column, spelling)
    if _is_list(kind):
        return [
            None if not item.is_valid else spelling.sequence(spell(item.values, spelling))  # one slice a row
            for item in column
        ]
    return _leaves(column, spelling)


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_list(kind)
        or t.is_large_list(kind)
        or t.is_fixed_size_list(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
    )


def _structs(column: pa.StructArray, spelling: Spelling) -> list[Any]:
    names = [field.name for field in column.type]
    fields = [spell(column.field(index), spelling) for index in range(len(names))]
    valid = column.is_valid().to_pylist()
    rows = zip(*fields, strict=True) if fields else iter([()] * len(column))
    return [spelling.struct(names, row) if there else None for there, row in zip(valid, rows, strict=True)]


def _maps(column: pa.MapArray, spelling: Spelling) -> list[Any]:
    textual = pa.types.is_string(column.type.key_type) or pa.types.is_large_string(column.type.key_type)
    rows: list[Any] = []
    for item in column:
        if not item.is_valid:
            rows.append(None)
            continue
        entries = item.values
        keys, values = spell(entries.field(0), spelling), spell(entries.field(1), spelling)
        rows.append(spelling.mapping(list(zip(keys, values, strict=True)), textual=textual))
    return rows


def _leaves(column: pa.Array, spelling: Spelling) -> list[Any]:
    kind, t = column.type, pa.types
    if t.is_timestamp(kind):
        zoned = kind.tz is not None
        return _each(
            column.view(pa.int64()).to_pylist(),
            lambda ticks: spelling.moment(ticks, _PER_SECOND[kind.unit], zoned=zoned),
        )
    if t.is_date32(kind):
        return _each(column.view(pa.int32()).to_pylist(), _date)
    if t.is_date64(kind):
        return _each(column.view(pa.int64()).to_pylist(), lambda millis: _date(millis // (_DAY_SECONDS * 1000)))
    if t.is_duration(kind):
        return _each(column.view(pa.int64()).to_pylist(), lambda ticks: _interval(ticks, _PER_SECOND[kind.unit]))
    if t.is_boolean(kind):
        return _each(column.to_pylist(), spelling.truth)
    if t.is_integer(kind):
        return _each(column.to_pylist(), spelling.whole)
    if t.is_floating(kind):
        return _each(column.to_pylist(), spelling.real if t.is_float64(kind) else spelling.single)
    if t.is_decimal(kind):
        return _each(column.to_pylist(), spelling.decimal)
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind) or t.is_binary_view(kind):
        return _each(column.to_pylist(), spelling.binary)
    return _each(column.to_pylist(), str)


def _each(values: list[Any], function: Callable[[Any], object]) -> list[Any]:
    return [None if value is None else function(value) for value in values]


# Time, from integers: proleptic Gregorian, as Arrow and Spark count.


def _date(days: int) -> str:
    # Whole cycles of 400 years, so that the standard library's range does not matter.
    cycles, rest = divmod(days + 719_468, 146_097)
    of_era = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * of_era + of_era // 4 - of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day, month = of_year - (153 * shifted + 2) // 5 + 1, shifted + 3 if shifted < 10 else shifted - 9
    year = of_era + 400 * cycles + (month <= 2)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def _clock(seconds: int, fraction: int, per_second: int) -> str:
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if not fraction:
        return text
    return f"{text}.{fraction:0{len(str(per_second)) - 1}d}".rstrip("0")


def _moment(ticks: int, per_second: int, between: str) -> str:
    seconds, fraction = divmod(ticks, per_second)
    days, seconds = divmod(seconds, _DAY_SECONDS)
    return f"{_date(days)}{between}{_clock(seconds, fraction, per_second)}"


def _interval(ticks: int, per_second: int) -> str:
    sign, (seconds, fraction) = "-" if ticks < 0 else "", divmod(abs(ticks), per_second)
    days, seconds = divmod(seconds, _DAY_SECONDS)
    return f"INTERVAL '{sign}{days} {_clock(seconds, fraction, per_second)}' DAY TO SECOND"


def _shortest(digits: str) -> str:
    """A float's shortest digits, laid out as Java does: where versions of Java differ, it is the newer one's text."""
    number = Decimal(digits)
    if not number or Decimal("0.001") <= abs(number) < 10_000_000:
        text = format(number, "f")
        return text if "." in text else f"{text}.0"
    sign, figures, _ = number.as_tuple()
    head, tail = figures[0], "".join(map(str, figures[1:])).rstrip("0") or "0"
    return f"{'-' if sign else ''}{head}.{tail}E{number.adjusted()}"


def _odd_float(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _inner(value: object) -> str:
    return "null" if value is None else str(value)


class _Text:
    """As people read them."""

    def truth(self, value: bool) -> str:
        return "true" if value else "false"

    def whole(self, value: int) -> str:
        return str(value)

    def real(self, value: float) -> str:
        return java_text(value) or _shortest(repr(value))

    def single(self, value: float) -> str:
        return java_text(value, single=True) or _shortest(str(np.float32(value)))

    def decimal(self, value: Decimal) -> str:
        return format(value, "f")

    def binary(self, value: bytes) -> str:
        return f"X'{value.hex().upper()}'"

    def moment(self, ticks: int, per_second: int, *, zoned: bool) -> str:
        return _moment(ticks, per_second, " ")

    def sequence(self, items: list[Any]) -> str:
        return f"[{', '.join(map(_inner, items))}]"

    def struct(self, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{{{', '.join(map(_inner, values))}}}"

    def mapping(self, pairs: list[tuple[Any, Any]], *, textual: bool) -> str:
        return f"{{{', '.join(f'{_inner(key)} -> {_inner(value)}' for key, value in pairs)}}}"


class _Json:
    """As programs read them."""

    def truth(self, value: bool) -> bool:
        return value

    def whole(self, value: int) -> int:
        return value

    def real(self, value: float) -> float | str:
        return _odd_float(value) or value

    def single(self, value: float) -> float | str:
        return _odd_float(value) or float(str(np.float32(value)))

    def decimal(self, value: Decimal) -> str:
        return format(value, "f")

    def binary(self, value: bytes) -> str:
        return b64encode(value).decode("ascii")

    def moment(self, ticks: int, per_second: int, *, zoned: bool) -> str:
        return _moment(ticks, per_second, "T") + ("Z" if zoned else "")

    def sequence(self, items: list[Any]) -> list[Any]:
        return items

    def struct(self, names: Sequence[str], values: Sequence[Any]) -> object:
        # SQL allows a struct two fields of one name; an object would drop one.
        return dict(zip(names, values, strict=True)) if len(set(names)) == len(names) else list(values)

    def mapping(self, pairs: list[tuple[Any, Any]], *, textual: bool) -> object:
        return dict(pairs) if textual and len(dict(pairs)) == len(pairs) else [list(pair) for pair in pairs]


TEXT: Spelling = _Text()
JSON: Spelling = _Json()
