"""What one run of a program knows: its columns, how many rows, which of them count, and what was computed already.

Operators compute all rows, because that is what vectors are fast at; a row that was not reached (the other side of a
CASE, the right of a decided AND) may give nonsense, but must not give an error. So an operator that may fail makes a
mask of its bad rows and hands it to `check`, which looks at ``active`` and at the nulls only if there is a bad row at
all.

Invariant: ``active`` is None for all rows or the mask of those that reach the operator; ``actives`` holds the mask of
each region of the program that was entered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from headwater.sql.vectorised.vector import Mask, Operand, Vector

__all__ = ["OVERFLOW", "Columns", "Frame", "Kernel", "RowFailed", "Step", "both", "count_true"]

try:
    # numpy.count_nonzero without its dispatch, which costs more than counting a hundred rows.
    from numpy._core.multiarray import count_nonzero as count_true
except ImportError:
    from numpy import count_nonzero as count_true

OVERFLOW = "a number does not fit its type (overflow)"
Columns: TypeAlias = "Sequence[Vector] | Callable[[int], Vector]"


class RowFailed(Exception):
    """A row for which Spark stops with an error; the program turns it into an `ExpressionError`."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason


class Frame:
    """The state of one run."""

    __slots__ = ("active", "actives", "memo", "read", "rows")

    def __init__(self, read: Callable[[int], Vector], rows: int, slots: int, regions: int) -> None:
        self.read = read
        self.rows = rows
        self.active: Mask | None = None
        self.actives: list[Mask | None] = [None] * regions
        self.memo: list[object] = [None] * slots

    def check(self, bad: Mask, valid: Mask | None, reason: str) -> None:
        """Stop if a row that counts is bad."""
        if not count_true(bad):
            return
        if valid is not None:
            bad = bad & valid
        if self.active is not None:
            bad = bad & self.active
        if count_true(bad):
            raise RowFailed(int(bad.argmax()), reason)

    def counted(self, valid: Mask | None) -> Mask | None:
        """The rows that count and have a value; None for all."""
        if self.active is None:
            return valid
        return self.active if valid is None else self.active & valid


Step: TypeAlias = Callable[[Frame], Operand]
Kernel: TypeAlias = Callable[..., Operand]


def both(a: Mask | None, b: Mask | None) -> Mask | None:
    """The rows of two masks, where None is all of them.

    >>> import numpy as np
    >>> both(None, np.array([True, False])).tolist()
    [True, False]
    """
    return b if a is None else a if b is None else a & b
