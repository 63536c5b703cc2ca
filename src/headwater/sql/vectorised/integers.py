"""Whole numbers: ``+ - * % div``, minus and abs, with the overflow of each width.

Numbers of every width are int64 here, so a result of a narrow type is computed exactly and then held against its
bounds, by one subtraction and one unsigned comparison. In 64 bits sums wrap, and the signs tell; a product is compared
with the product of the same numbers as doubles: where it wrapped, the two are 2^64 apart.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.nodes import Call
from headwater.sql.vectorised.frame import OVERFLOW, Frame, Kernel, both, count_true
from headwater.sql.vectorised.vector import Mask, Operand, Vector

__all__ = ["BOUNDS", "integer_kernel", "outside", "quotient", "remainder", "within"]

BOUNDS = {
    t: (-(1 << (t.bit_width - 1)), (1 << (t.bit_width - 1)) - 1)
    for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
}
_LEAST, _MOST = BOUNDS[pa.int64()]
_LARGE = 4096
_APART = np.float64(1 << 63)
_ZERO = np.int64(0)
Body = Callable[[Any, Any], tuple[Any, Any]]


def outside(values: Any, low: int, high: int) -> Mask:
    """Where whole numbers are not from ``low`` to ``high``.

    >>> outside(np.array([-1, 0, 9]), 0, 8).tolist()
    [True, False, True]
    """
    found: Mask = (values - low).view(np.uint64) > high - low
    return found


@functools.lru_cache(maxsize=256)
def within(low: int, high: int) -> Callable[[Any], Mask]:
    """`outside` with bounds that are used again."""
    least, width = np.int64(low), np.uint64(high - low)
    return lambda values: (values - least).view(np.uint64) > width


@functools.lru_cache(maxsize=256)
def _factor_check(y: int) -> Callable[[Any], Mask]:
    """Which numbers overflow when they are multiplied by a constant."""
    if y > 0:
        return within(-((1 << 63) // y), _MOST // y)
    return within(-(_MOST // -y), min(_MOST, (1 << 63) // -y))


def _add(x: Any, y: Any) -> tuple[Any, Any]:
    found = x + y
    if type(y) is np.int64:
        return found, (found < x) if y >= 0 else (found > x)
    if type(x) is np.int64:
        return found, (found < y) if x >= 0 else (found > y)
    signs = x ^ found
    signs &= y ^ found
    return found, signs < _ZERO


def _subtract(x: Any, y: Any) -> tuple[Any, Any]:
    found = x - y
    if type(y) is np.int64:
        return found, (found > x) if y >= 0 else (found < x)
    signs = x ^ y
    signs &= x ^ found
    return found, signs < _ZERO


def _multiply(x: Any, y: Any) -> tuple[Any, Any]:
    if type(x) is np.int64:
        x, y = y, x
    if type(y) is np.int64:
        if y in (0, 1):
            return x * y, None
        return x * y, _factor_check(int(y))(x)
    found = x * y
    about = np.multiply(x, y, dtype=np.float64)
    about -= found
    return found, np.abs(about, out=about) > _APART


_WIDE: dict[str, Body] = {"+": _add, "-": _subtract, "*": _multiply}
_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}


def remainder(x: Any, y: Any) -> Any:
    """``x % y`` with the sign of ``x``; what is given for a zero is arbitrary.

    >>> remainder(np.array([-7, 7]), 3).tolist()
    [-1, 1]
    """
    if type(y) is not np.int64 or len(x) < _LARGE or y in (0, _LEAST):
        return np.fmod(x, y)
    # The division by a constant is done without dividing, but it rounds downwards.
    divisor = abs(y)
    found = x // divisor
    found *= divisor
    np.subtract(x, found, out=found)
    below = x < _ZERO
    if count_true(below):
        below &= found != _ZERO
        found -= divisor * below
    return found


def quotient(x: Any, y: Any) -> Any:
    """``x div y``, cut towards zero; what is given for a zero is arbitrary.

    >>> quotient(np.array([-7, 7]), 2).tolist()
    [-3, 3]
    """
    found = x // y
    found += ((found * y) != x) & ((x ^ y) < 0)
    return found


def _sum(op: str, dtype: pa.DataType) -> Kernel:
    wide, plain, is_outside = _WIDE[op], _PLAIN[op], within(*BOUNDS[dtype])

    def kernel64(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        found, bad = wide(a.values, b.values)
        if bad is not None and count_true(bad):
            frame.check(bad, valid, OVERFLOW)
        return Vector(dtype, found, valid)

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        found = plain(a.values, b.values)
        bad = is_outside(found)
        if count_true(bad):
            frame.check(bad, valid, OVERFLOW)
        return Vector(dtype, found, valid)

    return kernel64 if dtype == pa.int64() else kernel


def _tried(op: str, dtype: pa.DataType) -> Kernel:
    low, high = BOUNDS[dtype]
    wide, plain = _WIDE[op], _PLAIN[op]

    def kernel(_: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        if dtype == pa.int64():
            found, bad = wide(a.values, b.values)
        else:
            found = plain(a.values, b.values)
            bad = outside(found, low, high)
        return Vector(dtype, found, valid if bad is None else both(valid, ~bad))

    return kernel


def _divided(op: str, dtype: pa.DataType) -> Kernel:
    body, reason = (remainder, "remainder by zero") if op == "%" else (quotient, "division by zero")

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        x, y = a.values, b.values
        if type(y) is not np.int64 or y in (0, -1):
            if type(y) is np.int64:
                y = np.full(frame.rows, y)
            frame.check(y == _ZERO, valid, reason)
            if op == "div":
                frame.check((y == -1) & (x == _LEAST), valid, OVERFLOW)
        return Vector(dtype, body(x, y), valid)

    return kernel


def _signed(op: str, dtype: pa.DataType) -> Kernel:
    least = BOUNDS[dtype][0]
    body: Callable[[Any], Any] = np.negative if op == "minus" else np.abs

    def kernel(frame: Frame, a: Operand) -> Operand:
        bad = a.values == least
        if count_true(bad):
            frame.check(bad, a.valid, OVERFLOW)
        return Vector(dtype, body(a.values), a.valid)

    return kernel


def _modulus(dtype: pa.DataType) -> Kernel:
    add = _sum("+", dtype)

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid, x, y = both(a.valid, b.valid), a.values, b.values
        below = x < 0
        if not count_true(below):
            return Vector(dtype, x, valid)
        moved = add(frame, Vector(dtype, np.where(below, x, 0), valid), b)
        return Vector(dtype, np.where(below, remainder(moved.values, y), x), valid)

    return kernel


def integer_kernel(node: Call) -> Kernel | None:
    """The kernel of an operator on whole numbers of one type."""
    op, dtype = node.op, node.dtype
    if op in ("+", "-", "*"):
        return _sum(op, dtype)
    if op in ("%", "div"):
        return _divided(op, dtype)
    if op in ("minus", "abs"):
        return _signed(op, dtype)
    if op == "pmod":
        return _modulus(dtype)
    return _tried(op.removeprefix("try "), dtype) if op in ("try +", "try -", "try *") else None
