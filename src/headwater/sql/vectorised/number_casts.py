"""Casts among integers, floats, decimals and booleans: cut towards zero, rounded half up, held against the bounds of
the target.

``safe`` is TRY_CAST: what does not fit becomes a null. A float that is NaN, infinite or too great is no integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.casts import by_text
from headwater.sql.types import digits_of, family
from headwater.sql.vectorised.decimals import rescaled
from headwater.sql.vectorised.frame import OVERFLOW, Frame, Kernel, both, count_true
from headwater.sql.vectorised.integers import BOUNDS, outside
from headwater.sql.vectorised.vector import Mask, Operand, Vector, is_wide

__all__ = ["kernel_of", "number_cast"]

# Values to (values, bad rows or None).
Body = Callable[[Any], tuple[Any, Any]]


def kernel_of(dtype: pa.DataType, body: Body, *, safe: bool, reason: str = OVERFLOW) -> Kernel:
    """A kernel of one operand whose bad rows stop the program or, if ``safe``, are null."""

    def kernel(frame: Frame, a: Operand) -> Operand:
        found, bad = body(a.values)
        valid = a.valid
        if bad is not None and count_true(bad):
            if safe:
                valid = both(valid, ~bad)
            else:
                frame.check(bad, valid, reason)
        return Vector(dtype, found, valid)

    return kernel


def _within(low: int, high: int) -> Body:
    return lambda x: (x, outside(x, low, high))


def _whole_of_float(low: int, high: int) -> Body:
    least, past = float(low), float(high + 1)

    def body(x: Any) -> tuple[Any, Any]:
        cut = np.trunc(x.astype(np.float64, copy=False))
        good = (cut >= least) & (cut < past)
        return cut.astype(np.int64), ~good

    return body


def _objects_outside(x: Any, low: int, high: int) -> Mask:
    if x.dtype != object:
        return outside(x, max(low, -(1 << 63)), min(high, (1 << 63) - 1))
    bad: Mask = ((x < low) | (x > high)).astype(np.bool_, copy=False)
    return bad


def _digits_within(x: Any, precision: int) -> Mask | None:
    most = 10**precision - 1
    if x.dtype != object and most >= (1 << 63) - 1:
        return None
    return _objects_outside(x, -most, most)


def _to_decimal(scale: int, target: pa.DataType) -> Body:
    places, (have, want) = target.scale - scale, (scale, target.precision)

    def body(x: Any) -> tuple[Any, Any]:
        found = rescaled(x, places)
        bad = _digits_within(found, want)
        if found.dtype == object and want <= 18:
            # What lies under nulls, or is bad, must not make a narrow decimal wide.
            found = np.where(_objects_outside(found, -(10**18), 10**18), 0, found).astype(np.int64)
        return found, bad

    assert have >= 0
    return body


def _whole_of_decimal(scale: int, low: int, high: int) -> Body:
    unit = 10**scale

    def body(x: Any) -> tuple[Any, Any]:
        if x.dtype == object or unit >= 1 << 63:
            whole = x.astype(object)
            cut = np.where(whole < 0, -(-whole // unit), whole // unit)
            bad = _objects_outside(cut, low, high)
            return np.where(bad, 0, cut).astype(np.int64), bad
        cut = x // unit
        cut += (x < 0) & (cut * unit != x)
        return cut, _objects_outside(cut, low, high)

    return body


def _single(x: Any) -> tuple[Any, Any]:
    found = x.astype(np.float32)
    return found, np.isinf(found) & np.isfinite(x)


def _body(source: pa.DataType, target: pa.DataType) -> Body | None:
    kind, wanted = family(source), family(target)
    have = digits_of(source)
    if wanted == "boolean":
        return lambda x: ((x != 0).astype(np.bool_, copy=False), None)
    if kind == "boolean":
        number = np.int64 if wanted == "integer" else np.float32 if target == pa.float32() else np.float64
        return None if wanted not in ("integer", "float") else lambda x: (x.astype(number), None)
    if wanted == "integer":
        low, high = BOUNDS[target]
        if kind == "integer":
            return (lambda x: (x, None)) if BOUNDS[source][0] >= low else _within(low, high)
        if kind == "float":
            return _whole_of_float(low, high)
        return _whole_of_decimal(source.scale, low, high)
    if wanted == "decimal":
        return None if have is None else _to_decimal(have[1], target)
    if kind == "float":
        return _single if target == pa.float32() and source != target else lambda x: (x.astype(np.float64), None)
    if kind == "integer":
        real = np.float32 if target == pa.float32() else np.float64
        return lambda x: (x.astype(real), None)
    # At most 15 digits: both numbers are exact doubles, and the quotient is rounded once.
    unit = float(10**source.scale)
    return None if is_wide(source) or by_text(source, target) else lambda x: (x / unit, None)


def number_cast(source: pa.DataType, target: pa.DataType, *, safe: bool) -> Kernel | None:
    """The kernel of a cast between numbers or booleans, or None for other types."""
    kinds = {"integer", "float", "decimal", "boolean"}
    if family(source) not in kinds or family(target) not in kinds:
        return None
    body = _body(source, target)
    return None if body is None else kernel_of(target, body, safe=safe)
