"""A whole number through another, rounded half away from zero: what intervals are divided by."""

from __future__ import annotations

import numpy as np

from headwater.sql.nodes import Call
from headwater.sql.types import LONG
from headwater.sql.vectorised.frame import OVERFLOW, Frame, Kernel, both
from headwater.sql.vectorised.vector import Operand, Vector

__all__ = ["OPERATORS"]

_LEAST = np.int64(-(1 << 63))


def _half_up(_: Call) -> Kernel:
    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        x, y = np.broadcast_to(a.values, frame.rows), np.broadcast_to(b.values, frame.rows)
        frame.check(y == 0, valid, "division by zero")
        frame.check((x == _LEAST) & (y == -1), valid, OVERFLOW)
        y = np.where(y == 0, np.int64(1), y)
        y = np.where((x == _LEAST) & (y == -1), np.int64(1), y)
        cut = x // y
        rest = x - cut * y  # of the sign of y
        cut, rest = (
            np.where((rest != 0) & ((x < 0) != (y < 0)), cut + 1, cut),
            np.where((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest),
        )
        # As negative numbers, which have one more.
        left, whole = np.where(rest > 0, -rest, rest), np.where(y > 0, -y, y)
        up = left <= whole - left
        return Vector(LONG, cut + np.where(up, np.where((x < 0) != (y < 0), -1, 1), 0), valid)

    return kernel


OPERATORS = {"half up /": _half_up}
