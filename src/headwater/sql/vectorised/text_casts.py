"""Casts from and to texts: Arrow prints and reads what it prints and reads as Spark does, the rest is read row by row.

Whole numbers in their plain form (``-12``) and dates of ten characters are read by the column; any other text, with
blanks, a sign or a part missing, goes through the same Python functions that DuckDB's path calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.datetime_text import Unreadable, days_of, micros_of
from headwater.sql.java_numbers import java_text
from headwater.sql.number_text import real_of, single_of, truth_of, whole_of
from headwater.sql.types import family, name_of
from headwater.sql.vectorised.calendar import days_of_parts
from headwater.sql.vectorised.frame import OVERFLOW, Frame, Kernel, RowFailed, count_true
from headwater.sql.vectorised.integers import BOUNDS, outside
from headwater.sql.vectorised.vector import Mask, Operand, Vector, validity, vector_of

__all__ = ["text_cast"]

_PLAIN_WHOLE = pc.MatchSubstringOptions(r"\A-?[0-9]{1,18}\z")
_PLAIN_REAL = pc.MatchSubstringOptions(r"\A-?[0-9]{1,15}([.][0-9]{1,15})?\z")
_MATCH = pc.get_function("match_substring_regex")
_FEWEST, _LAST = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


class _Bad(ValueError):
    """A text that cannot be read, with the reason."""


def _whole(low: int, high: int, why: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        found = whole_of(text)
        if found is None:
            raise _Bad(why)
        if not low <= found <= high:
            raise _Bad(OVERFLOW)
        return found

    return read


def _known(read_text: Callable[[str], Any], why: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        found = read_text(text)
        if found is None:
            raise _Bad(why)
        return found

    return read


def _moment(read_text: Callable[[str], int | None], why: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            found = read_text(text)
        except Unreadable as unreadable:
            raise _Unreadable(f"{unreadable} is not known here") from None
        if found is None:
            raise _Bad(why)
        return found

    return read


class _Unreadable(ValueError):
    """A text that Spark reads: not even TRY_CAST makes a null of it."""


def _row_by_row(frame: Frame, array: pa.Array, read: Callable[[str], Any], kind: type[np.generic], safe: bool) -> Any:
    counted = frame.counted(None)
    out = np.zeros(len(array), kind)
    valid = np.ones(len(array), np.bool_)
    for row, text in enumerate(array.to_pylist()):
        if text is None or (counted is not None and not counted[row]):
            valid[row] = False
            continue
        try:
            out[row] = read(text)
        except _Bad as bad:
            if not safe:
                raise RowFailed(row, str(bad)) from None
            valid[row] = False
        except _Unreadable as unreadable:
            raise RowFailed(row, str(unreadable)) from None
    return out, None if valid.all() else valid


def _all_match(array: pa.Array, options: Any) -> bool:
    matched = _MATCH.call([array], options)
    return bool(matched.true_count == len(array) - array.null_count)


def _from_text(target: pa.DataType, *, safe: bool) -> Kernel | None:
    kind, why = family(target), f"a text cannot be cast to {name_of(target)}"
    number: type[np.generic] = np.int64
    if kind == "integer":
        low, high = BOUNDS[target]
        read: Callable[[str], Any] = _whole(low, high, why)
    elif kind == "float":
        single = target == pa.float32()
        read, number = _known(single_of if single else real_of, why), np.float32 if single else np.float64
    elif kind == "boolean":
        read, number = _known(truth_of, why), np.bool_
    elif kind == "date":
        read = _moment(days_of, why)
    elif kind in ("timestamp", "timestamp_ntz"):
        zoned = kind == "timestamp"
        read = _moment(lambda text: micros_of(text, zoned=zoned), why)
    else:
        return None

    def kernel(frame: Frame, a: Operand) -> Operand:
        array = a.values
        if kind == "integer" and _all_match(array, _PLAIN_WHOLE):
            found = vector_of(array.cast(pa.int64()))
            bad = outside(found.values, low, high)
            if not count_true(bad if found.valid is None else bad & found.valid):
                return Vector(target, found.values, found.valid)
        elif target == pa.float64() and _all_match(array, _PLAIN_REAL):
            return vector_of(array.cast(pa.float64()))
        elif kind == "date" and (days := _plain_dates(array)) is not None:
            return Vector(target, days, None)
        values, valid = _row_by_row(frame, array, read, number, safe)
        return Vector(target, values, valid)

    return kernel


def _plain_dates(array: pa.Array) -> Any:
    """The days of a column of dates of the form 2024-02-29, or None if one has another form."""
    rows = len(array)
    _, ends, data = array.buffers()
    if rows == 0 or array.null_count or data is None:
        return None
    offsets = np.frombuffer(ends, np.int32)[array.offset : array.offset + rows + 1]
    if offsets[-1] - offsets[0] != 10 * rows or count_true(offsets[1:] - offsets[:-1] != 10):
        return None
    text = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].reshape(rows, 10)
    digits = text[:, [0, 1, 2, 3, 5, 6, 8, 9]] - np.uint8(48)
    if count_true(digits > 9) or count_true(text[:, [4, 7]] != 45):
        return None
    d = digits.astype(np.int64)
    year = ((d[:, 0] * 10 + d[:, 1]) * 10 + d[:, 2]) * 10 + d[:, 3]
    month, day = d[:, 4] * 10 + d[:, 5], d[:, 6] * 10 + d[:, 7]
    days, good = days_of_parts(year, month, day)
    return days if good.all() and year.min() >= 1 else None


def _java_texts(source: pa.DataType) -> Kernel:
    single = source == pa.float32()

    def kernel(frame: Frame, a: Operand) -> Operand:
        counted = frame.counted(a.valid)
        out: list[str | None] = [None] * frame.rows
        for row, value in enumerate(a.values.tolist()):
            if counted is not None and not counted[row]:
                continue
            out[row] = java_text(value, single=single)
            if out[row] is None:
                raise RowFailed(row, f"the digits of {value!r} as a text depend on the version of Java")
        return Vector(pa.string(), pa.array(out, pa.string()))

    return kernel


def _printed(source: pa.DataType) -> Kernel | None:
    kind = family(source)
    if kind == "float":
        return _java_texts(source)
    if kind == "decimal" and (source.scale > 6 or source.precision > 18):
        return None
    if kind in ("integer", "boolean", "decimal"):
        return lambda _, a: Vector(pa.string(), a.to_arrow().cast(pa.string()))
    if kind != "date":
        return None

    def dates(frame: Frame, a: Operand) -> Operand:
        assert isinstance(a, Vector)
        bad = outside(a.values, _FEWEST, _LAST)
        if count_true(bad):
            frame.check(bad, a.valid, "a date outside the years 1 to 9999 has no common text")
            a = Vector(a.dtype, np.where(bad, 0, a.values), a.valid)
        return Vector(pa.string(), a.to_arrow().cast(pa.string()))

    return dates


def _decoded(frame: Frame, a: Operand) -> Operand:
    try:
        return Vector(pa.string(), a.values.cast(pa.string()))
    except pa.ArrowInvalid:
        counted: Mask | None = frame.counted(validity(a))
        out: list[str | None] = [None] * frame.rows
        for row, value in enumerate(a.values.to_pylist()):
            if counted is not None and not counted[row]:
                continue
            try:
                out[row] = value.decode()
            except UnicodeDecodeError:
                raise RowFailed(row, "a binary that is not UTF-8 has no text") from None
        return Vector(pa.string(), pa.array(out, pa.string()))


def text_cast(source: pa.DataType, target: pa.DataType, *, safe: bool) -> Kernel | None:
    """The kernel of a cast from or to a text, or None for other types."""
    if family(target) == "string":
        return _decoded if family(source) == "binary" else _printed(source)
    if family(source) != "string":
        return None
    if family(target) == "binary":
        return lambda _, a: Vector(target, a.values.cast(pa.binary()))
    return _from_text(target, safe=safe)
