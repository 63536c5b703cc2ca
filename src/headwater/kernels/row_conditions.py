"""Conditions that depend on the way of a search, computed row by row: a stack of numbers, and sums over the way.

A condition is ``code`` over a stack; each number on it may be null. Its ``slots`` say where numbers come from: a column
in the row that is tried, in the first, last or n-th row that some variables took, or an aggregate of those rows. Where
a number is too large, a divisor is zero, or a value could not be computed, the answer is `UNKNOWN`, and Python computes
the condition, or finds the error that it is.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, index, return-value, unreachable, var-annotated"

from __future__ import annotations

import math

import numpy as np

from headwater.kernels.arrays import ByteRows, DoubleRows, Doubles, Positions, Rows
from headwater.kernels.compiled import inlined, shared

__all__ = ["AGGREGATES", "CODE", "MOST_DEEP", "UNKNOWN", "holds_at", "take_row"]

_CODES = """
    slot constant null + - * add_double subtract_double multiply_double divide_double minus minus_double abs
    abs_double to_double = != < <= > >= =d !=d <d <=d >d >=d <=> <=>d and or not is_null is_not_null if if_double
"""
CODE = {name: number for number, name in enumerate(_CODES.split())}
(
    _SLOT, _CONSTANT, _NULL, _ADD, _SUBTRACT, _MULTIPLY, _ADD_D, _SUBTRACT_D, _MULTIPLY_D, _DIVIDE_D, _MINUS, _MINUS_D,
    _ABS, _ABS_D, _TO_DOUBLE, _EQ, _NE, _LT, _LE, _GT, _GE, _EQ_D, _NE_D, _LT_D, _LE_D, _GT_D, _GE_D, _SAME, _SAME_D,
    _AND, _OR, _NOT, _IS_NULL, _IS_NOT_NULL, _IF, _IF_D,
) = range(36)  # fmt: skip

AGGREGATES = {
    name: number for number, name in enumerate(["count", "sum", "sum_double", "min", "max", "min_double", "max_double"])
}
_COUNT, _SUM, _SUM_D, _MIN, _MAX, _MIN_D, _MAX_D = range(7)

_LEAST = np.int64(-(1 << 63))
UNKNOWN = np.int64(2)
MOST_DEEP = 32


@inlined
def _order(a: float, b: float) -> int:
    """-1, 0 or 1; NaN is equal to itself and above everything, as in Spark."""
    if math.isnan(a):
        return np.int64(0) if math.isnan(b) else np.int64(1)
    if math.isnan(b) or a < b:
        return np.int64(-1)
    return np.int64(1) if a > b else np.int64(0)


@shared
def holds_at(  # noqa: C901 (one branch per instruction)
    code: Rows,
    begin: int,
    end: int,
    integers: Positions,
    doubles: Doubles,
    slots: Rows,
    ints: Rows,
    floats: DoubleRows,
    int_marks: ByteRows,
    float_marks: ByteRows,
    start: int,
    depth: int,
    rows: int,
    counts: Rows,
    lists: Rows,
    sums: Rows,
    double_sums: DoubleRows,
    seen: Rows,
    number: int,
    a: Positions,
    f: Doubles,
    void: Positions,
) -> int:
    """A condition at the last of ``depth`` rows that are taken: 1 true, 0 not true, 2 not known here.

    ``number`` is that of the match in its partition. ``a``, ``f`` and ``void`` are the stack: whole numbers, doubles,
    and whether there is none.
    """
    top = -1
    for at in range(begin, end):
        op = code[at, 0]
        if op == _SLOT:
            top += 1
            void[top] = 0
            slot = code[at, 1]
            kind, which, first, skipped, column = (
                slots[slot, 0],
                slots[slot, 1],
                slots[slot, 2],
                slots[slot, 3],
                slots[slot, 4],
            )
            if kind == 6:
                a[top] = number
                continue
            if kind >= 2:
                none = seen[which, depth] == 0
                if kind == 4:
                    a[top] = seen[which, depth]
                elif none:
                    void[top] = 1
                    a[top] = 0
                    f[top] = 0.0
                elif kind == 2:
                    a[top] = sums[which, depth]
                elif kind == 3:
                    f[top] = double_sums[which, depth]
                else:
                    f[top] = double_sums[which, depth] / seen[which, depth]
                if kind == 2 and not none and sums[which, depth] == _LEAST:
                    return UNKNOWN  # too large, or very nearly
                continue
            row = start + depth - 1
            if which != -1:  # not the row itself: one of some variables, or (-2) of all
                count = depth if which == -2 else counts[which, depth]
                index = skipped if first == 1 else count - 1 - skipped
                there = 0 <= index < count
                row = (start + (index if which == -2 else lists[which, index])) if there else rows
            if kind == 0:
                a[top] = ints[column, row]
                mark = int_marks[column, row]
            else:
                f[top] = floats[column, row]
                mark = float_marks[column, row]
            if mark == 2:
                return UNKNOWN
            void[top] = mark
        elif op == _CONSTANT:
            top += 1
            void[top] = 0
            a[top] = integers[code[at, 1]]
            f[top] = doubles[code[at, 1]]
        elif op == _NULL:
            top += 1
            void[top] = 1
            a[top] = 0
            f[top] = 0.0
        elif op == _NOT:
            a[top] = 1 - a[top]
        elif op == _IS_NULL:
            a[top] = void[top]
            void[top] = 0
        elif op == _IS_NOT_NULL:
            a[top] = 1 - void[top]
            void[top] = 0
        elif op in (_MINUS, _ABS):
            if void[top] == 0:
                if a[top] <= code[at, 1]:
                    return UNKNOWN
                if op == _MINUS or a[top] < 0:
                    a[top] = -a[top]
        elif op == _MINUS_D:
            f[top] = -f[top]
        elif op == _ABS_D:
            f[top] = abs(f[top])
        elif op == _TO_DOUBLE:
            f[top] = np.float64(a[top])
        elif op in (_IF, _IF_D):
            top -= 2
            chosen = top + 1 if void[top] == 0 and a[top] == 1 else top + 2
            void[top] = void[chosen]
            a[top] = a[chosen]
            f[top] = f[chosen]
        else:
            top -= 1
            b, g, other = a[top + 1], f[top + 1], void[top + 1]
            if op == _AND:
                false = (void[top] == 0 and a[top] == 0) or (other == 0 and b == 0)
                void[top] = 0 if false else max(void[top], other)
                a[top] = 0 if false else 1
            elif op == _OR:
                true = (void[top] == 0 and a[top] == 1) or (other == 0 and b == 1)
                void[top] = 0 if true else max(void[top], other)
                a[top] = 1 if true else 0
            elif op in (_SAME, _SAME_D):
                if void[top] == 1 or other == 1:
                    a[top] = 1 if void[top] == other else 0
                elif op == _SAME:
                    a[top] = 1 if a[top] == b else 0
                else:
                    a[top] = 1 if _order(f[top], g) == 0 else 0
                void[top] = 0
            elif void[top] == 1 or other == 1:
                void[top] = 1
                a[top] = 0
                f[top] = 0.0
            elif op <= _MULTIPLY:
                x = a[top]
                if op == _ADD:
                    y = x + b
                    over = ((x ^ y) & (b ^ y)) < 0
                elif op == _SUBTRACT:
                    y = x - b
                    over = ((x ^ b) & (x ^ y)) < 0
                else:
                    y = x * b
                    over = abs(np.float64(x) * np.float64(b)) > 9.2e18
                if over or y > code[at, 2] or y < -code[at, 2] - 1:
                    return UNKNOWN
                a[top] = y
            elif op == _ADD_D:
                f[top] = f[top] + g
            elif op == _SUBTRACT_D:
                f[top] = f[top] - g
            elif op == _MULTIPLY_D:
                f[top] = f[top] * g
            elif op == _DIVIDE_D:
                if g == 0.0:
                    return UNKNOWN
                f[top] = f[top] / g
            else:
                if op >= _EQ_D:
                    order = _order(f[top], g)
                    op -= _EQ_D - _EQ
                else:
                    order = np.int64(1) if a[top] > b else (np.int64(-1) if a[top] < b else np.int64(0))
                if op == _EQ:
                    true = order == 0
                elif op == _NE:
                    true = order != 0
                elif op == _LT:
                    true = order < 0
                elif op == _LE:
                    true = order <= 0
                elif op == _GT:
                    true = order > 0
                else:
                    true = order >= 0
                a[top] = 1 if true else 0
    return np.int64(1) if void[top] == 0 and a[top] == 1 else np.int64(0)


@shared
def take_row(  # noqa: C901 (one branch per aggregate)
    variable: int,
    row: int,
    depth: int,
    member: ByteRows,
    counts: Rows,
    lists: Rows,
    aggregates: Rows,
    ints: Rows,
    floats: DoubleRows,
    int_marks: ByteRows,
    float_marks: ByteRows,
    sums: Rows,
    double_sums: DoubleRows,
    seen: Rows,
) -> bool:
    """Count a row to its sets and aggregates; False where a value is not known here."""
    for s in range(member.shape[0]):
        count = counts[s, depth]
        if member[s, variable] == 1:
            lists[s, count] = depth
            count += 1
        counts[s, depth + 1] = count
    for g in range(aggregates.shape[0]):
        op, which, column, is_double = aggregates[g, 0], aggregates[g, 1], aggregates[g, 2], aggregates[g, 3]
        seen[g, depth + 1] = seen[g, depth]
        sums[g, depth + 1] = sums[g, depth]
        double_sums[g, depth + 1] = double_sums[g, depth]
        if which >= 0 and member[which, variable] == 0:
            continue
        if column >= 0:
            mark = float_marks[column, row] if is_double == 1 else int_marks[column, row]
            if mark == 2:
                return False
            if mark == 1:
                continue
        first = seen[g, depth] == 0
        seen[g, depth + 1] += 1
        if op == _SUM:
            x = np.int64(0) if first else sums[g, depth]
            y = x + ints[column, row]
            over = ((x ^ y) & (ints[column, row] ^ y)) < 0
            sums[g, depth + 1] = _LEAST if over or (not first and x == _LEAST) else y
        elif op == _SUM_D:
            double_sums[g, depth + 1] = floats[column, row] + (0.0 if first else double_sums[g, depth])
        elif op == _MIN:
            if first or ints[column, row] < sums[g, depth]:
                sums[g, depth + 1] = ints[column, row]
        elif op == _MAX:
            if first or ints[column, row] > sums[g, depth]:
                sums[g, depth + 1] = ints[column, row]
        elif op == _MIN_D:
            if first or _order(floats[column, row], double_sums[g, depth]) < 0:
                double_sums[g, depth + 1] = floats[column, row]
        elif op == _MAX_D and (first or _order(floats[column, row], double_sums[g, depth]) > 0):
            double_sums[g, depth + 1] = floats[column, row]
    return True
