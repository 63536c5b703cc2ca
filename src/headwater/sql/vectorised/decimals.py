"""Decimals by their unscaled whole numbers: exact sums and products, quotients rounded half up.

A decimal(p, s) is a whole number of 10^-s. Most of what is stored fits an int64 even where its type does not, so
every step is computed in int64 with a check; only where that overflows are the rows computed once more with Python's
whole numbers, whose range has no end. The digits of the result's type are checked last.

Invariant: a kernel gives int64 values, or an object array of Python integers (see `vector`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.nodes import Call
from headwater.sql.types import digits_of
from headwater.sql.vectorised.frame import OVERFLOW, Frame, Kernel, both, count_true
from headwater.sql.vectorised.integers import outside
from headwater.sql.vectorised.vector import Mask, Operand, Vector

__all__ = ["checked", "decimal_kernel", "rescaled", "scaled_up"]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_HUGE = 1 << 127
_APART = float(1 << 63)


def _is_object(x: Any) -> bool:
    return x.dtype == object if isinstance(x, np.ndarray) else not _LEAST <= x <= _MOST


def _as_objects(x: Any) -> Any:
    return x.astype(object) if isinstance(x, np.ndarray) and x.dtype != object else x


def scaled_up(x: Any, factor: int) -> Any:
    """``x * factor`` for a positive factor, in int64 if that holds it.

    >>> scaled_up(np.array([1, 2**62]), 4).tolist()
    [4, 18446744073709551616]
    """
    if factor == 1:
        return x
    if not isinstance(x, np.ndarray):
        return x * factor
    if x.dtype != object and factor <= _MOST:
        bound = _MOST // factor
        if not count_true(outside(x, -bound, bound)):
            return x * factor
    return x.astype(object) * factor


def rescaled(x: Any, places: int) -> Any:
    """A whole number with ``places`` digits more, or fewer, rounded half up.

    >>> rescaled(np.array([15, -15, 14]), -1).tolist()
    [2, -2, 1]
    """
    if places >= 0:
        return scaled_up(x, 10**places)
    unit = 10**-places
    half = unit // 2
    if not _is_object(x) and unit <= _MOST:
        low = x < 0
        size = np.abs(x)
        # The least int64 is its own absolute value, and half of a unit may overflow: rare, and left to Python's
        # numbers.
        if not count_true(outside(size, 0, _MOST - half)):
            size += half
            size //= unit
            return np.where(low, -size, size)
    whole = _as_objects(x)
    return np.where(whole < 0, -((-whole + half) // unit), (whole + half) // unit)


def checked(frame: Frame, values: Any, valid: Mask | None, precision: int) -> None:
    """Stop where a number has more digits than the type."""
    most = 10**precision - 1
    if values.dtype != object:
        if most >= _MOST:
            return
        bad = outside(values, -most, most)
    else:
        bad = (values > most) | (values < -most)
    if count_true(bad):
        frame.check(bad.astype(np.bool_, copy=False), valid, OVERFLOW)


def _added(x: Any, y: Any) -> Any:
    if not _is_object(x) and not _is_object(y):
        found = x + y
        if not count_true(((x ^ found) & (y ^ found)) < 0):
            return found
    return _as_objects(x) + _as_objects(y)


def _subtracted(x: Any, y: Any) -> Any:
    if not _is_object(x) and not _is_object(y):
        found = x - y
        if not count_true(((x ^ y) & (x ^ found)) < 0):
            return found
    return _as_objects(x) - _as_objects(y)


def _multiplied(x: Any, y: Any) -> Any:
    if not _is_object(x) and not _is_object(y):
        found = x * y
        about = np.multiply(x, y, dtype=np.float64)
        about -= found
        if not count_true(np.abs(about) > _APART):
            return found
    return _as_objects(x) * _as_objects(y)


_BODIES: dict[str, Callable[[Any, Any], Any]] = {"+": _added, "-": _subtracted, "*": _multiplied}


def _sum(node: Call) -> Kernel:
    op, dtype = node.op, node.dtype
    body = _BODIES[op]
    # Where a product is capped at 38 digits and keeps fewer places than it has, the reader puts a rounding cast on top.
    shifts = [0, 0] if op == "*" else [dtype.scale - _digits(a)[1] for a in node.args]
    ups = [10**s for s in shifts]
    fits = dtype.precision < 38

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        found = body(scaled_up(a.values, ups[0]), scaled_up(b.values, ups[1]))
        if not fits:
            checked(frame, found, valid, dtype.precision)
        return Vector(dtype, found, valid)

    return kernel


def _digits(node: Any) -> tuple[int, int]:
    digits = digits_of(node.dtype)
    assert digits is not None
    return digits


def _remainder(node: Call) -> Kernel:
    dtype = node.dtype
    ups = [10 ** (dtype.scale - _digits(a)[1]) for a in node.args]

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        x, y = scaled_up(a.values, ups[0]), scaled_up(b.values, ups[1])
        zero = y == 0
        if count_true(zero):
            frame.check(np.broadcast_to(zero, frame.rows), valid, "remainder by zero")
            y = np.where(zero, 1, y)
        # The least int64 has no absolute value, which numpy's fmod takes.
        if _is_object(x) or _is_object(y) or count_true(y == _LEAST):
            x, y = _as_objects(x), abs(_as_objects(y))
            return Vector(dtype, np.where(x < 0, -(-x % y), x % y), valid)
        return Vector(dtype, np.fmod(x, y), valid)

    return kernel


def _quotient(node: Call) -> Kernel:
    dtype = node.dtype
    left, right = (_digits(a) for a in node.args)
    shift = right[1] + dtype.scale - left[1]
    up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        y = b.values
        zero = y == 0
        if count_true(zero):
            frame.check(np.broadcast_to(zero, frame.rows), valid, "division by zero")
            y = np.where(zero, 1, y)
        top, bottom = scaled_up(a.values, up), scaled_up(y, down)
        found = _rounded_quotient(frame, top, bottom, valid)
        checked(frame, found, valid, dtype.precision)
        return Vector(dtype, found, valid)

    return kernel


def _rounded_quotient(frame: Frame, top: Any, bottom: Any, valid: Mask | None) -> Any:
    if not _is_object(top) and not _is_object(bottom):
        high, low = np.abs(top), np.abs(bottom)
        limit = 1 << 61
        if not count_true((high > limit) | (low > limit) | (high < 0) | (low < 0)):
            size = (2 * high + low) // (2 * low)
            return np.where((top < 0) != (bottom < 0), -size, size)
    top, bottom = _as_objects(top), _as_objects(bottom)
    high, low = abs(top), abs(bottom)
    bad = np.broadcast_to(2 * high + low >= _HUGE, frame.rows).astype(np.bool_)
    frame.check(bad, valid, OVERFLOW)
    size = (2 * high + low) // (2 * low)
    return np.where((top < 0) != (bottom < 0), -size, size)


def _signed(node: Call) -> Kernel:
    dtype, negative = node.dtype, node.op == "minus"

    def kernel(_: Frame, a: Operand) -> Operand:
        x = a.values
        if x.dtype != object and count_true(x == _LEAST):
            x = x.astype(object)
        return Vector(dtype, -x if negative else abs(x), a.valid)

    return kernel


def decimal_kernel(node: Call) -> Kernel | None:
    """The kernel of an operator on decimals."""
    if not all(pa.types.is_decimal(a.dtype) for a in node.args):
        return None
    if node.op in _BODIES:
        return _sum(node)
    if node.op == "%":
        return _remainder(node)
    if node.op == "/":
        return _quotient(node)
    return _signed(node) if node.op in ("minus", "abs") else None
