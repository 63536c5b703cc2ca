"""Operators, typed: comparisons, logic, arithmetic, IN, LIKE, CASE.

Each function takes typed operands, makes Spark's coercions explicit and gives one node, or raises `Refused`.
What depends on the engine (how a division by zero is caught) is left to the engine's form.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext

import pyarrow as pa

from headwater.sql.binding import shared
from headwater.sql.casts import cast
from headwater.sql.interval_types import is_interval
from headwater.sql.intervals.arithmetic import interval_arithmetic, interval_minus
from headwater.sql.intervals.values import long_amount
from headwater.sql.nodes import Call, Literal, Node, Refused, Wrong, call
from headwater.sql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    NULL,
    STRING,
    decimal_result,
    digits_of,
    family,
    is_comparable,
    literal_decimal,
    name_of,
    rounded_product,
    tighter,
    wider,
)

__all__ = [
    "arithmetic",
    "between",
    "cases",
    "compare",
    "contains",
    "is_null",
    "is_zero_sign",
    "like",
    "logic",
    "minus",
    "negate",
    "united",
    "whole_quotient",
    "zero_sign",
]

_COMPARABLE = {
    "integer",
    "float",
    "decimal",
    "string",
    "binary",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "day interval",
    "month interval",
    "null",
}
_NUMBERS = {"integer", "float", "decimal"}


def _same_type(args: Sequence[Node], what: str, *, promote_text: bool = True) -> tuple[Node, ...]:
    def step(a: pa.DataType, b: pa.DataType) -> pa.DataType:
        meet = wider(a, b, promote_text=promote_text)
        if meet is None:
            hint = "cast one side so that both have one type"
            raise Refused(f"{what} of {name_of(a)} and {name_of(b)}", hint)
        return meet

    common = functools.reduce(step, (a.dtype for a in args))
    return tuple(cast(a, common) for a in args)


def _comparable(args: Sequence[Node], what: str, *, nested: bool = False) -> None:
    for arg in args:
        if family(arg.dtype) not in _COMPARABLE and not (nested and is_comparable(arg.dtype)):
            raise Refused(f"{what} of {name_of(arg.dtype)}", "compare its fields one by one")


def _renamed(args: Sequence[Node]) -> tuple[Node, ...]:
    """Structs that differ in the names of their fields alone are compared by place, as Spark does:
    under the first one's names.
    """
    first = args[0].dtype
    if not pa.types.is_struct(first):
        return tuple(args)
    return tuple(cast(a, first) if _shape(a.dtype) == _shape(first) else a for a in args)


def _shape(dtype: pa.DataType) -> object:
    """A type without the names of its fields."""
    if not pa.types.is_nested(dtype):
        return dtype
    kind = "struct" if pa.types.is_struct(dtype) else "map" if pa.types.is_map(dtype) else "array"
    return kind, *(_shape(dtype.field(i).type) for i in range(dtype.num_fields))


def united(args: Sequence[Node], what: str, *, promote_text: bool = True) -> tuple[Node, ...]:
    """Operands in their common type, for coalesce, CASE, greatest and the like."""
    return _same_type(args, what, promote_text=promote_text)


def compare(op: str, left: Node, right: Node) -> Call:
    """``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` or ``<=>``."""
    _comparable((left, right), "a comparison", nested=True)
    left, right = _renamed((left, right))
    if family(left.dtype) == "nested" and tighter(left.dtype, right.dtype) is None:
        what = f"a comparison of {name_of(left.dtype)} and {name_of(right.dtype)}"
        raise Refused(what, "cast one side so that both have one type")
    same = _same_type((left, right), "a comparison")
    # Arrays and structs have an equality and an order of their own: inside them null equals null, and is the smallest.
    nested = family(same[0].dtype) == "nested"
    return call(f"nested {op}" if nested else op, same, BOOLEAN)


def logic(op: str, parts: Sequence[Node]) -> Node:
    """``and`` or ``or`` of two or more conditions."""
    return call(op, tuple(_condition(p) for p in parts), BOOLEAN)


def _condition(node: Node) -> Node:
    if node.dtype == NULL:
        return cast(node, BOOLEAN)
    if node.dtype != BOOLEAN:
        raise Wrong(f"a condition of type {name_of(node.dtype)} is no boolean", "compare it with something")
    return node


def negate(node: Node) -> Node:
    """NOT, kept in a form that files can be skipped by."""
    node = _condition(node)
    if isinstance(node, Call) and node.op in ("=", "is null"):
        return Call({"=": "!=", "is null": "is not null"}[node.op], node.args, BOOLEAN, node.fallible)
    return call("not", (node,), BOOLEAN)


def is_null(node: Node) -> Call:
    """IS NULL, of any type."""
    return call("is null", (node,), BOOLEAN)


def zero_sign(node: Node) -> Call:
    """Is a float the negative zero? It compares as equal to the other zero, and is another value."""
    return call("zero sign", (node,), BOOLEAN)


def is_zero_sign(node: Node) -> bool:
    """Is it what only tells the two zeros apart?"""
    return isinstance(node, Call) and node.op == "zero sign"


def between(value: Node, low: Node, high: Node) -> Node:
    """BETWEEN is two comparisons, each with its own coercion."""
    return shared(value, lambda v: logic("and", (compare(">=", v, low), compare("<=", v, high))))


def contains(value: Node, items: Sequence[Node]) -> Node:
    """IN (list)."""
    _comparable((value, *items), "IN", nested=True)
    value, *items = _renamed((value, *items))
    if family(value.dtype) == "nested" and any(tighter(value.dtype, i.dtype) is None for i in items):
        raise Refused(f"IN of {name_of(value.dtype)} and other types", "cast the values to its type")
    same = _same_type((value, *items), "IN")
    if any(i.fallible for i in same[1:]) or family(same[0].dtype) == "nested":
        # Spark stops at the first match, so items that may fail have to be tried in order.
        if len(same) == 2:
            return compare("=", *same)
        return shared(same[0], lambda v: logic("or", [compare("=", v, i) for i in same[1:]]))
    return call("in", same, BOOLEAN)


def like(value: Node, pattern: Node, escape: str = "\\") -> Node:
    """LIKE with a constant pattern, which is folded already, checked for Spark's escape rule."""
    value = cast(value, STRING)
    if not isinstance(pattern, Literal) or not (pattern.value is None or isinstance(pattern.value, str)):
        raise Refused("LIKE with a pattern that is not a constant text", "write the pattern as 'a%'")
    if len(escape) != 1:
        raise Wrong(f"ESCAPE {escape!r} is no single character", "escape with one character other than % and _")
    if escape in "%_":
        raise Refused(f"ESCAPE {escape!r}", "escape with one character other than % and _")
    text, at = pattern.value or "", 0
    while (at := text.find(escape, at)) >= 0:
        if text[at + 1 : at + 2] not in ("%", "_", escape):
            raise Refused(
                f"the LIKE pattern {text!r}",
                f"{escape} may stand only before %, _ or {escape}: double it to match itself",
            )
        at += 2
    return call("like", (value, cast(pattern, STRING), Literal(escape, STRING)), BOOLEAN)


def cases(branches: Sequence[tuple[Node, Node]], default: Node | None) -> Node:
    """CASE WHEN … THEN … ELSE … END, and if()."""
    for condition, _ in branches:
        if condition.dtype != BOOLEAN:
            what = f"a CASE condition of type {name_of(condition.dtype)}"
            if condition.dtype == NULL:
                raise Refused(what, "compare it with something")
            raise Wrong(f"{what} is no boolean", "compare it with something")
    last = default if default is not None else Literal(None, NULL)
    values = united([v for _, v in branches] + [last], "a CASE")
    args: list[Node] = []
    for (condition, _), value in zip(branches, values[:-1], strict=True):
        args += [condition, value]
    return call("case", (*args, values[-1]), values[-1].dtype)


def minus(node: Node) -> Node:
    """Unary minus: of an integer it may overflow."""
    if is_interval(node.dtype):
        return interval_minus(node)
    if family(node.dtype) not in _NUMBERS:
        raise Refused(f"minus of {name_of(node.dtype)}", "negate a number")
    return call("minus", (node,), node.dtype, fallible=family(node.dtype) == "integer")


def arithmetic(op: str, left: Node, right: Node) -> Node:
    """``+ - * / %`` on numbers, and with intervals and moments."""
    if (found := interval_arithmetic(op, left, right, cast)) is not None:
        return found
    if (found := _days_later(op, left, right)) is not None:
        return found
    kinds = {family(left.dtype), family(right.dtype)} - {"null"}
    if not kinds <= _NUMBERS or not kinds:
        hint = "cast texts to numbers; use date_add, date_sub and datediff for dates"
        raise Refused(f"`{op}` of {name_of(left.dtype)} and {name_of(right.dtype)}", hint)
    # Spark takes a NULL on the left of a division for a double, and nowhere else.
    if "decimal" in kinds and "float" not in kinds and not (op == "/" and left.dtype == NULL):
        return _decimal_arithmetic(op, left, right)
    if op == "/":
        left, right = cast(left, DOUBLE), cast(right, DOUBLE)
    else:
        left, right = _same_type((left, right), f"`{op}`")
    if (known := _constant(op, left, right, left.dtype)) is not None:
        return known
    overflows = family(left.dtype) == "integer"
    divides = op in "/%" and not (isinstance(right, Literal) and right.value)
    return call(op, (left, right), left.dtype, fallible=(overflows and op != "%") or divides)


def _days_later(op: str, left: Node, right: Node) -> Node | None:
    """``date + 1``, ``1 + date`` and ``date - 1``: Spark counts days, in numbers up to int."""
    if op == "+" and right.dtype == DATE:
        left, right = right, left
    if op not in "+-" or left.dtype != DATE or right.dtype not in (pa.int8(), pa.int16(), INT):
        return None
    return call(f"date {op}", (left, cast(right, INT)), DATE, fallible=True)


def whole_quotient(left: Node, right: Node) -> Node:
    """``a div b`` of whole numbers: a bigint, cut towards zero."""
    if is_interval(left.dtype) and is_interval(right.dtype) and left.dtype.of_days == right.dtype.of_days:
        return call("div", (long_amount(left), long_amount(right)), LONG, fallible=True)
    for side in (left, right):
        if family(side.dtype) != "integer":
            raise Refused(f"DIV of {name_of(side.dtype)}", "divide whole numbers")
    return call("div", (cast(left, LONG), cast(right, LONG)), LONG, fallible=True)


def _decimal_arithmetic(op: str, left: Node, right: Node) -> Node:
    left, right = (_as_decimal(n, other) for n, other in ((left, right), (right, left)))
    a, b = digits_of(left.dtype), digits_of(right.dtype)
    assert a is not None and b is not None
    result = decimal_result(op, a, b)
    if result is None and op == "*" and a[1] + b[1] <= 38:
        # Spark rounds the exact product to fit 38 digits. An exact product that itself has more is an error here.
        exact = call(op, (left, right), pa.decimal128(38, a[1] + b[1]), fallible=True)
        return cast(exact, rounded_product(a, b))
    if result is None:
        what = f"`{op}` of {name_of(left.dtype)} and {name_of(right.dtype)}"
        raise Refused(f"{what}, which needs more than 38 digits,", "cast one side to fewer digits, or to double")
    if (known := _constant(op, left, right, result)) is not None:
        return known
    divides = op in "/%" and not (isinstance(right, Literal) and right.value)
    return call(op, (left, right), result, fallible=divides or result.precision == 38)


def _constant(op: str, left: Node, right: Node, dtype: pa.DataType) -> Literal | None:
    """The value of a sum or product of constants, if it fits: what cannot fail need not be guarded."""
    if op not in "+-*" or not (isinstance(left, Literal) and isinstance(right, Literal)):
        return None
    a, b = left.value, right.value
    if type(a) is not type(b) or not isinstance(a, int | Decimal) or isinstance(a, bool):
        return None
    with localcontext(Context(prec=80)):
        value = a + b if op == "+" else a - b if op == "-" else a * b  # type: ignore[operator]
        if isinstance(value, int):
            fits = -(1 << (dtype.bit_width - 1)) <= value < 1 << (dtype.bit_width - 1)
        else:
            fits = abs(value.scaleb(dtype.scale)) < 10**dtype.precision
            value = value.quantize(Decimal(1).scaleb(-dtype.scale))
    return Literal(value, dtype) if fits else None


def _as_decimal(node: Node, other: Node) -> Node:
    if node.dtype == NULL:
        return cast(node, other.dtype)
    if family(node.dtype) == "decimal":
        return node
    if isinstance(node, Literal) and isinstance(node.value, int):
        digits = literal_decimal(node.value)  # Spark gives an integer constant its own, tight precision
        assert digits is not None
        return Literal(Decimal(node.value), pa.decimal128(*digits))
    digits = digits_of(node.dtype)
    assert digits is not None
    return cast(node, pa.decimal128(*digits))
