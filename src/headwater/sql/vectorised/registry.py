"""All operators that have a kernel, by the name they have in the typed tree.

A builder looks at a call, at its types and constants, and gives a kernel; a `Constant` where the answer does not depend
on the rows; or None, and then the call is DuckDB's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwater.sql.functions.user import is_user
from headwater.sql.nodes import Call
from headwater.sql.types import has_float
from headwater.sql.vectorised import (
    arithmetic,
    bits,
    calendar,
    casts,
    comparison,
    extremes,
    intervals,
    membership,
    moment_texts,
    moments,
    nullness,
    patterns,
    rounding,
    structs,
    texts,
    transcendental,
)
from headwater.sql.vectorised.frame import Kernel
from headwater.sql.vectorised.rows import row_kernel
from headwater.sql.vectorised.users import user_kernel
from headwater.sql.vectorised.vector import Constant

__all__ = ["OPERATORS", "is_quiet", "is_strict", "kernel_of_call"]

_FAMILIES = (
    arithmetic,
    bits,
    calendar,
    casts,
    comparison,
    extremes,
    intervals,
    membership,
    moment_texts,
    moments,
    nullness,
    patterns,
    rounding,
    structs,
    texts,
    transcendental,
)
OPERATORS: dict[str, Callable[[Call], Kernel | Constant | None]] = {}
for _family in _FAMILIES:
    _operators: Mapping[str, Any] = _family.OPERATORS
    OPERATORS.update(_operators)
# Of these a null operand does not make a null.
_TAKES_NULLS = frozenset(
    {"is null", "is not null", "<=>", "in", "greatest", "least", "concat_ws", "named_struct", "isnan"}
)


def is_strict(op: str) -> bool:
    """Does a null operand make a null, so that the kernel need not be asked? A function by row decides for itself.

    >>> is_strict("+"), is_strict("<=>"), is_strict("mask")
    (True, False, False)
    """
    return op in OPERATORS and op not in _TAKES_NULLS


# What makes no floating-point warnings, so that they need not be turned off; of "+" and its kin that holds for whole
# numbers.
_QUIET = frozenset(
    {*comparison.OPERATORS, *nullness.OPERATORS, *texts.OPERATORS, *patterns.OPERATORS, *membership.OPERATORS}
    | {*structs.OPERATORS, *bits.OPERATORS, *extremes.OPERATORS, "and", "or", "case", "coalesce"}
)
_QUIET_NUMBERS = frozenset(
    {"+", "-", "*", "minus", "abs", "cast", *calendar.OPERATORS, *intervals.OPERATORS, *moments.OPERATORS}
)


def is_quiet(node: Call) -> bool:
    """Does the call itself make no floating-point warnings?"""
    if node.op in _QUIET:
        return True
    return node.op in _QUIET_NUMBERS and not any(has_float(t) for t in (node.dtype, *(a.dtype for a in node.args)))


def kernel_of_call(node: Call) -> Kernel | Constant | None:
    """The kernel of a call, or None where only DuckDB knows it."""
    if is_user(node.op):
        return user_kernel(node)
    builder = OPERATORS.get(node.op)
    kernel = None if builder is None else builder(node)
    return row_kernel(node) if kernel is None else kernel
