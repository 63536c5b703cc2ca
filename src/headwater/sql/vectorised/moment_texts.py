"""Timestamps as texts: date_format with plain pictures, and CAST to a string.

Between the years 1000 and 9999 Arrow prints the parts of a plain picture (``yyyy-MM-dd HH:mm:ss`` and the like) by the
column; other pictures and years go row by row through the Python function that DuckDB's path calls.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Call
from headwater.sql.types import STRING
from headwater.sql.udfs import UDFS
from headwater.sql.vectorised.frame import Frame, Kernel, RowFailed, count_true
from headwater.sql.vectorised.integers import within
from headwater.sql.vectorised.rows import called_by_row
from headwater.sql.vectorised.texts import literal
from headwater.sql.vectorised.vector import Operand, Vector, dense, packed

__all__ = ["OPERATORS", "moment_text"]

_SECOND = 1_000_000
_PICTURES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PART = re.compile(r"[A-Za-z]+|[ :/.,_-]+")
_STRFTIME = pc.get_function("strftime")
# 1000-01-01 and 0001-01-01, both to the end of 9999, in microseconds.
_LAST = 253_402_300_799_999_999
_has_other_year, _has_no_text = within(-30_610_224_000_000_000, _LAST), within(-62_135_596_800_000_000, _LAST)


def _spelled(picture: str) -> str | None:
    """A plain picture as strftime spells it."""
    parts = _PART.findall(picture)
    if "".join(parts) != picture or any(p[0].isalpha() and p not in _PICTURES for p in parts):
        return None
    return "".join(_PICTURES.get(p, p) for p in parts)


def _printed(micros: Any, valid: Any, options: Any) -> pa.Array:
    """The whole seconds by strftime: with fractions, %S would print them."""
    seconds = np.ascontiguousarray(micros // _SECOND)
    bitmap = None if valid is None else packed(valid)
    array = pa.Array.from_buffers(pa.timestamp("s"), len(seconds), [bitmap, pa.py_buffer(seconds)])
    return _STRFTIME.call([array], options)


def _formatted(node: Call) -> Kernel | None:
    picture = literal(node.args[1], str)
    spelled = None if picture is None else _spelled(picture)
    by_row = called_by_row(UDFS["hw_format_timestamp"], STRING)
    options = None if spelled is None else pc.StrftimeOptions(spelled, locale="C")

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        moment = dense(a, frame.rows)
        if options is not None:
            counted = frame.counted(moment.valid)
            other = _has_other_year(moment.values)
            if not count_true(other if counted is None else other & counted):
                return Vector(STRING, _printed(moment.values, counted, options))
        return by_row(frame, Vector(pa.int64(), moment.values, moment.valid), b)

    return kernel


def moment_text(frame: Frame, a: Operand) -> Operand:
    """CAST of a timestamp to a string: the fraction of its second without zeros at the end."""
    counted, micros = frame.counted(a.valid), a.values
    bad = _has_no_text(micros)
    if count_true(bad if counted is None else bad & counted):
        row = int((bad if counted is None else bad & counted).argmax())
        raise RowFailed(row, "a timestamp outside the years 1 to 9999 has no common text")
    if count_true(bad):
        micros = np.where(bad, 0, micros)
    texts = _printed(micros, counted, _WHOLE)
    fractions = micros % _SECOND
    other = (fractions != 0) | _has_other_year(micros)
    if counted is not None:
        other &= counted
    if not count_true(other):
        return Vector(STRING, texts)
    out = texts.to_pylist()
    for row in np.flatnonzero(other).tolist():
        fraction = f".{fractions[row]:06d}".rstrip("0") if fractions[row] else ""
        # strftime does not pad years everywhere.
        out[row] = out[row].rjust(19, "0") + fraction
    return Vector(STRING, pa.array(out, STRING))


_WHOLE = pc.StrftimeOptions("%Y-%m-%d %H:%M:%S", locale="C")
OPERATORS = {"date_format": _formatted}
