"""Numbers: rounding, remainders, and arithmetic that gives a null instead of an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.binding import shared
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.interval_types import is_interval
from headwater.sql.intervals.arithmetic import interval_absolute
from headwater.sql.intervals.values import long_amount
from headwater.sql.java_numbers import java_text
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import arithmetic, cases, compare, is_null, logic, minus, whole_quotient
from headwater.sql.types import BOOLEAN, DATE, DOUBLE, INT, LONG, NULL, STRING, digits_of, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS", "half_up"]

_WIDE = Context(prec=400)
_MOMENTS = {"date", "timestamp", "timestamp_ntz"}
_DOUBLE_DIGITS = pa.decimal128(30, 15)
_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


def _number(node: Node, name: str) -> Node:
    """A number; a text or a null becomes a double."""
    return argument("d", node, name) if node.dtype in (STRING, NULL) else argument("n", node, name)


def _abs(args: Sequence[Node]) -> Node:
    if is_interval(args[0].dtype):
        return interval_absolute(args[0])
    value = _number(args[0], "abs")
    return call("abs", (value,), value.dtype, fallible=family(value.dtype) == "integer")


def _isnan(args: Sequence[Node]) -> Node:
    value = args[0] if family(args[0].dtype) == "float" else argument("d", args[0], "isnan")
    return call("isnan", (value,), BOOLEAN)


def _whole(op: str) -> Builder:
    """ceil and floor: of a double a bigint, of a decimal a decimal without a fraction; to a place always a decimal."""
    to_place = _round(f"{op} to")

    def build(args: Sequence[Node]) -> Node:
        if len(args) == 2:
            if args[0].dtype in (STRING, NULL):
                raise Refused(f"{op}() of {name_of(args[0].dtype)} to a place", "cast it to a decimal first")
            value = _number(args[0], op)
            if family(value.dtype) == "integer":
                digits = digits_of(value.dtype)
                assert digits is not None
                value = cast(value, pa.decimal128(*digits))
            elif value.dtype == DOUBLE:
                value = call("digits of double", (value,), _DOUBLE_DIGITS, fallible=True)
            elif family(value.dtype) == "float":
                raise Refused(f"{op}() of a float to a place", "cast it to a decimal first")
            return to_place((value, args[1]))
        value = _number(args[0], op)
        if family(value.dtype) == "integer":
            return cast(value, LONG)
        if family(value.dtype) == "float":
            return call(op, (cast(value, DOUBLE),), LONG, fallible=True)
        if value.dtype.scale == 0:
            return value
        digits = min(38, value.dtype.precision - value.dtype.scale + 1)
        return call(op, (value,), pa.decimal128(digits, 0))

    return build


def _whole_form(function: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        if node.dtype != LONG:
            return f"CAST({function}({a[0]}) AS {duckdb_type(node.dtype)})"
        why = raise_form(f"{function}() of a number outside bigint")
        return f"(CASE WHEN NOT {a[0]} BETWEEN -9e18 AND 9e18 THEN {why} ELSE CAST({function}({a[0]}) AS BIGINT) END)"

    return form


def _decimal_digits(value: float) -> Decimal:
    """A double as Spark's decimal of it: the digits that Java prints, up to 15 after the point."""
    text = java_text(value) if math.isfinite(value) else None
    if text is None or abs(value) >= 1e15:
        raise Failed(f"{value!r} as a decimal has no common digits")
    return _rounded(Decimal(text), 15, ROUND_HALF_UP)


def _rounded(value: Decimal, places: int, mode: str) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), mode, _WIDE)


_DIGITS = define("digits_of_double", "DOUBLE", _DOUBLE_DIGITS, _decimal_digits)


def _rounder(mode: str) -> Callable[[float, int], float]:
    def call_(value: float, places: int) -> float:
        if not math.isfinite(value) or value == 0:
            return value + 0.0
        text = java_text(value)
        if text is None:
            raise Failed(f"the digits of {value!r} depend on the version of Java")
        return float(_rounded(Decimal(text), places, mode)) + 0.0

    return call_


half_up = _rounder(ROUND_HALF_UP)


def _whole_rounder(mode: str, bits: int) -> Callable[[int, int], int]:
    def call_(value: int, places: int) -> int:
        found = int(_rounded(Decimal(value), places, mode))
        if not -(1 << (bits - 1)) <= found < 1 << (bits - 1):
            raise Failed("a number does not fit its type (overflow)")
        return found

    return call_


def _decimal_rounder(mode: str, precision: int) -> Callable[[Decimal, int], Decimal]:
    def call_(value: Decimal, places: int) -> Decimal:
        found = _rounded(value, places, mode)
        found = _rounded(found, max(places, 0), mode)
        if len(found.as_tuple().digits) > precision:
            raise Failed("a number does not fit its type (overflow)")
        return found

    return call_


def _round(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        value = _number(args[0], op)
        places = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else 0 if len(args) == 1 else None
        if not isinstance(places, int) or isinstance(places, bool) or not -30 <= places <= 30:
            raise Refused(f"{op}() to a number of places that is not a constant from -30 to 30", f"write {op}(x, 2)")
        kind, given = family(value.dtype), (value, Literal(places, INT))
        if kind == "integer":
            return value if places >= 0 else call(op, given, value.dtype, fallible=True)
        if kind == "float":
            return call(op, given, value.dtype, fallible=True)
        precision, scale = value.dtype.precision, value.dtype.scale
        if places < 0:
            dtype = pa.decimal128(min(38, max(precision - scale + 1, 1 - places)), 0)
            return call(op, given, dtype, fallible=True)
        kept = min(scale, places)
        dtype = pa.decimal128(min(38, precision - scale + 1 + kept), kept)
        return cast(value, dtype) if op == "round" else call(op, (value, Literal(kept, INT)), dtype, fallible=True)

    return build


def _round_form(op: str, mode: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        given, places = node.args[0].dtype, node.args[1]
        assert isinstance(places, Literal) and isinstance(places.value, int)
        kind, name = family(given), duckdb_type(given)
        signature = name.lower().replace("(", "_").replace(")", "").replace(",", "_")
        body: Callable[..., Any]
        if kind == "float":
            body = _rounder(mode)
        elif kind == "integer":
            body = _whole_rounder(mode, _BITS[given])
        else:
            body = _decimal_rounder(mode, node.dtype.precision)
            signature += f"_to_{node.dtype.precision}_{node.dtype.scale}"
        general = (
            f"{define(f'{op}_{signature}'.replace(' ', '_'), f'{name} INTEGER', node.dtype, body)}({a[0]}, {a[1]})"
        )
        if given != DOUBLE or op != "round" or not 0 <= places.value <= 12:
            return general
        # Spark rounds the decimal digits that a double prints; up to 15 of them are the same everywhere.
        x = a[0]
        digits = f"CAST(CAST(CAST({x} AS VARCHAR) AS DECIMAL(38,22)) AS DECIMAL(38,{places.value}))"
        return (
            f"(CASE WHEN {x} IS NULL THEN NULL WHEN isnan({x}) OR abs({x}) >= 4503599627370496 THEN {x} "
            f"WHEN abs({x}) < 1e{15 - places.value} THEN CAST({digits} AS DOUBLE) ELSE {general} END)"
        )

    return form


def _pmod(args: Sequence[Node]) -> Node:
    return shared(args[1], lambda divisor: _pmod_of(args[0], divisor))


def _pmod_of(*args: Node) -> Node:
    first = arithmetic("%", args[0], args[1])
    assert isinstance(first, Call)
    if first.dtype != first.args[1].dtype:
        raise Refused(f"pmod() of {name_of(args[0].dtype)} and {name_of(args[1].dtype)}", "cast both to one type")
    return call("pmod", (first, first.args[1]), first.dtype, fallible=True)


def _tried(op: str) -> Builder:
    """try_add and its kin: a null where the plain operator would stop."""

    def build(args: Sequence[Node]) -> Node:
        if any(is_interval(a.dtype) or family(a.dtype) in _MOMENTS for a in args):
            if op in "+-" and args[0].dtype == DATE and args[1].dtype in (pa.int8(), pa.int16(), INT):
                return _shifted_date(op, args[0], args[1])
            if op in "+-" and is_interval(args[1].dtype) and family(args[0].dtype) in _MOMENTS:
                return arithmetic(op, args[0], args[1])  # what is null in Spark is beyond the years that are known here
            what = f"try_ arithmetic of {name_of(args[0].dtype)} and {name_of(args[1].dtype)}"
            raise Refused(what, "use the plain operator")
        if op in "/%":
            return shared(args[1], lambda divisor: _unless_zero(op, args[0], divisor))
        found = arithmetic(op, args[0], args[1])
        if isinstance(found, Literal):
            return found
        assert isinstance(found, Call)
        if family(found.dtype) == "integer":
            return call(f"try {op}", found.args, found.dtype)
        if found.fallible and family(found.dtype) == "decimal":
            raise Refused(f"try_ arithmetic of {name_of(found.dtype)}", "cast to fewer digits")
        return found

    return build


def _shifted_date(op: str, day: Node, days: Node) -> Node:
    """A date so many days later, or a null where there is no such date."""
    number = cast(call("unix_date", (day,), INT), LONG)
    moved = Call(op, (number, cast(days, LONG)), LONG, False)  # two numbers of 32 bits
    inside = logic(
        "and", [compare(">=", moved, Literal(-(2**31), LONG)), compare("<=", moved, Literal(2**31 - 1, LONG))]
    )
    shifted = arithmetic(op, day, cast(days, INT))
    return cases([(inside, shifted)], None)


def _unless_zero(op: str, left: Node, right: Node) -> Node:
    found = arithmetic(op, left, right)
    assert isinstance(found, Call)
    zero = compare("=", found.args[1], Literal(0, INT))
    return cases([(zero, Literal(None, NULL))], Call(op, found.args, found.dtype, True))


def _tried_form(op: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        half = 1 << (_BITS[node.dtype] - 1)
        wide = f"(CAST({a[0]} AS HUGEINT) {op} CAST({a[1]} AS HUGEINT))"
        inside = f"{wide} BETWEEN {-half}::HUGEINT AND {half - 1}::HUGEINT"
        return f"(CASE WHEN {inside} THEN CAST({wide} AS {duckdb_type(node.dtype)}) END)"

    return form


def _bucket(value: float, low: float, high: float, count: int) -> int | None:
    if count <= 0 or count == 2**63 - 1 or math.isnan(value) or low == high:
        return None
    if not math.isfinite(low) or not math.isfinite(high):
        return None
    lower, upper = min(low, high), max(low, high)
    before, after = (value < lower, value >= upper) if low < high else (value > upper, value <= lower)
    if before or after:
        return 0 if before else count + 1
    gone = value - lower if low < high else upper - value
    return int(float(count) * gone / (upper - lower)) + 1


_BUCKET = define("width_bucket", "DOUBLE DOUBLE DOUBLE BIGINT", LONG, _bucket)


def _width_bucket(args: Sequence[Node]) -> Node:
    given = list(args[:3])
    if all(is_interval(a.dtype) for a in given):
        if len({a.dtype.of_days for a in given}) > 1:
            raise Refused("width_bucket() of intervals of days and of months", "months have no length in days")
        given = [cast(long_amount(a), DOUBLE) for a in given]
    values = tuple(argument("d", a, "width_bucket") for a in given)
    return call("width_bucket", (*values, argument("l", args[3], "width_bucket")), LONG)


def _zero_if_null(args: Sequence[Node]) -> Node:
    return shared(args[0], lambda v: cases([(is_null(v), Literal(0, INT))], v))


def _null_if_zero(args: Sequence[Node]) -> Node:
    return shared(args[0], lambda v: cases([(compare("=", v, Literal(0, INT)), Literal(None, NULL))], v))


def _nanvl(args: Sequence[Node]) -> Node:
    same = tuple(argument("d", a, "nanvl") for a in args)
    if all(a.dtype == pa.float32() for a in args):
        raise Refused("nanvl() of floats", "cast them to double first")
    return shared(same[0], lambda v: cases([(call("isnan", (v,), BOOLEAN), same[1])], v))


def _positive(args: Sequence[Node]) -> Node:
    return _number(args[0], "positive")


_PMOD = "(CASE WHEN {0} < 0 THEN CAST(({0} + {1}) % {1} AS {type}) ELSE {0} END)"
_FACTORIAL = "(CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial(CAST({0} AS INTEGER)) AS BIGINT) END)"


def _whole_forms(op: str, mode: str) -> dict[str, Form]:
    return {op: _whole_form(op), f"{op} to": _round_form(f"{op} to", mode), "digits of double": f"{_DIGITS}({{0}})"}


_ROUNDINGS: tuple[Function, ...] = tuple(
    Function(op, "numeric", _round(op), 1, 2, {op: _round_form(op, mode)}, note="digits as Java prints them")
    for op, mode in (("round", ROUND_HALF_UP), ("bround", ROUND_HALF_EVEN))
)
FUNCTIONS: tuple[Function, ...] = (
    Function("abs", "numeric", _abs, 1, 1, {"abs": "abs({})"}),
    Function("isnan", "numeric", _isnan, 1, 1, {"isnan": "coalesce(isnan({}), FALSE)"}),
    Function("mod", "numeric", lambda args: arithmetic("%", args[0], args[1]), 2, 2),
    Function("pmod", "numeric", _pmod, 2, 2, {"pmod": _PMOD}),
    Function("div", "numeric", lambda args: whole_quotient(args[0], args[1]), 2, 2),
    Function("ceil", "numeric", _whole("ceil"), 1, 2, _whole_forms("ceil", ROUND_CEILING)),
    Function("ceiling", "numeric", _whole("ceil"), 1, 2),
    Function("floor", "numeric", _whole("floor"), 1, 2, _whole_forms("floor", ROUND_FLOOR)),
    *_ROUNDINGS,
    simple("rint", "numeric", "d", DOUBLE, "round_even({0}, 0)"),
    *(
        Function(f"try_{word}", "numeric", _tried(op), 2, 2, {f"try {op}": _tried_form(op)} if op in "+-*" else {})
        for word, op in (("add", "+"), ("subtract", "-"), ("multiply", "*"), ("divide", "/"), ("mod", "%"))
    ),
    simple("factorial", "numeric", "i", LONG, _FACTORIAL),
    Function(
        "width_bucket", "numeric", _width_bucket, 4, 4, {"width_bucket": f"{_BUCKET}({{0}}, {{1}}, {{2}}, {{3}})"}
    ),
    Function("zeroifnull", "numeric", _zero_if_null, 1, 1),
    Function("nullifzero", "numeric", _null_if_zero, 1, 1),
    Function("nanvl", "numeric", _nanvl, 2, 2),
    Function("positive", "numeric", _positive, 1, 1),
    Function("negative", "numeric", lambda args: minus(_number(args[0], "negative")), 1, 1),
)
