"""Roots, powers, logarithms and angles of doubles.

One rule for all of `INEXACT`: the value may differ from the JVM's by at most two units in the last place, because Java
and C compute these functions each in their own way, and Java's own versions differ too. Everything else here is exact:
the results for NaN, infinities, zeros and arguments outside the domain are Spark's, and a logarithm that does not exist
is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from headwater.sql.casts import cast
from headwater.sql.functions.function import Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.interval_types import is_interval
from headwater.sql.intervals.values import amount
from headwater.sql.nodes import Literal, Node, call
from headwater.sql.types import DOUBLE
from headwater.sql.udfs import define

__all__ = ["FUNCTIONS", "INEXACT", "INEXACT_UNITS"]

INEXACT_UNITS = 2
_INEXACT_NAMES = """
    acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc exp expm1 hypot ln log log10 log1p log2 pow power sec
    sin sinh tan tanh
"""
INEXACT = frozenset(_INEXACT_NAMES.split())
_NAN = "CAST('nan' AS DOUBLE)"
_INF = "CAST('inf' AS DOUBLE)"
_NOTE = "at most two units in the last place from the JVM's value"


def _expm1(x: float) -> float:
    try:
        return math.expm1(x)
    except OverflowError:
        return math.inf


def _hypot(x: float, y: float) -> float:
    return math.hypot(x, y)


def _log1p(x: float) -> float | None:
    return None if x <= -1 else math.log1p(x)


def _atanh(x: float) -> float:
    def log1p(y: float) -> float:
        return math.nan if y < -1 or math.isnan(y) else -math.inf if y == -1 else math.log1p(y)

    return 0.5 * (log1p(x) - log1p(-x))


_EXPM1 = define("expm1", "DOUBLE", DOUBLE, _expm1)
_HYPOT = define("hypot", "DOUBLE DOUBLE", DOUBLE, _hypot)
_LOG1P = define("log1p", "DOUBLE", DOUBLE, _log1p)
_ATANH = define("atanh", "DOUBLE", DOUBLE, _atanh)


def _function(name: str, form: Form | None, *, kinds: str = "d", op: str | None = None) -> Function:
    return simple(name, "numeric", kinds, DOUBLE, form, op=op, note=_NOTE if name in INEXACT else "")


def _sign(name: str, form: Form | None) -> Function:
    def build(args: Sequence[Node]) -> Node:
        value = cast(amount(args[0]), DOUBLE) if is_interval(args[0].dtype) else args[0]
        return call("sign", (argument("d", value, name),), DOUBLE)

    return Function(name, "numeric", build, 1, 1, {} if form is None else {"sign": form})


def _within(body: str) -> str:
    """A function of numbers from -1 to 1, and NaN outside."""
    return f"(CASE WHEN abs({{0}}) <= 1 THEN {body} WHEN {{0}} IS NULL THEN NULL ELSE {_NAN} END)"


def _finite(body: str) -> str:
    """A function of an angle, and NaN where it is infinite."""
    return f"(CASE WHEN isinf({{0}}) OR isnan({{0}}) THEN {_NAN} ELSE {body} END)"


def _positive(body: str) -> Callable[..., str]:
    """Logarithms: null where there is none."""
    return lambda _, a: f"(CASE WHEN {a[0]} <= 0 THEN NULL ELSE {body.format(*a)} END)"


def _log(args: Sequence[Node]) -> Node:
    if len(args) == 1:
        return call("ln", (argument("d", args[0], "log"),), DOUBLE)
    return call("log base", tuple(argument("d", a, "log") for a in args), DOUBLE)


_SIGN = "(CASE WHEN isnan({0}) THEN {0} WHEN {0} > 0 THEN 1e0 WHEN {0} < 0 THEN -1e0 ELSE {0} END)"
# log(0) and log(1) are infinite and zero divisors there, as in Java.
_LOG_BASE = (
    "(CASE WHEN {0} <= 0 OR {1} <= 0 THEN NULL WHEN {0} = 1 THEN (CASE WHEN isnan({1}) OR {1} = 1 THEN "
    f"{_NAN} WHEN {{1}} > 1 THEN {_INF} ELSE -{_INF} END) ELSE ln({{1}}) / ln({{0}}) END)"
)
# Spark takes the sign off a zero first.
_UNSIGNED = "(CASE WHEN {{{0}}} = 0 THEN 0e0 ELSE {{{0}}} END)"
# C says that 1 to any power is 1; Java says so only of numbers that are finite.
_POW = f"(CASE WHEN isnan({{1}}) OR (abs({{0}}) = 1 AND isinf({{1}})) THEN {_NAN} ELSE pow({{0}}, {{1}}) END)"
_ACOSH = f"(CASE WHEN {{0}} >= 1 THEN acosh({{0}}) WHEN {{0}} IS NULL THEN NULL ELSE {_NAN} END)"


def _over(body: str) -> str:
    """One over a function, whose zero gives an infinity of the same sign."""
    inner = f"(1e0 / {body})"
    return _finite(
        f"(CASE WHEN {{0}} = 0 THEN (CASE WHEN CAST({{0}} AS VARCHAR) = '-0.0' THEN -{_INF} ELSE {_INF} END) "
        f"ELSE {inner} END)"
    )


def _constant(name: str, value: float) -> Function:
    return Function(name, "numeric", lambda _: Literal(value, DOUBLE), 0, 0)


FUNCTIONS: tuple[Function, ...] = (
    _function("sqrt", f"(CASE WHEN {{0}} < 0 THEN {_NAN} ELSE sqrt({{0}}) END)"),
    _function("cbrt", "cbrt({0})"),
    _sign("sign", _SIGN),
    _sign("signum", None),
    _function("exp", "exp({0})"),
    _function("expm1", f"{_EXPM1}({{0}})"),
    _function("ln", _positive("ln({0})")),
    Function("log", "numeric", _log, 1, 2, {"log base": _LOG_BASE}, note=_NOTE),
    _function("log10", _positive("log10({0})")),
    _function("log2", _positive("ln({0}) / ln(2e0)")),
    _function("log1p", f"{_LOG1P}({{0}})"),
    _function("pow", _POW, kinds="dd"),
    _function("power", None, kinds="dd", op="pow"),
    _function("sin", _finite("sin({0})")),
    _function("cos", _finite("cos({0})")),
    _function("tan", _finite("tan({0})")),
    _function("cot", _over("tan({0})")),
    _function("csc", _over("sin({0})")),
    _function("sec", _finite("(1e0 / cos({0}))")),
    _function("asin", _within("asin({0})")),
    _function("acos", _within("acos({0})")),
    _function("atan", "atan({0})"),
    _function("atan2", f"atan2({_UNSIGNED.format(0)}, {_UNSIGNED.format(1)})", kinds="dd"),
    _function("sinh", "sinh({0})"),
    _function("cosh", "cosh({0})"),
    _function("tanh", "tanh({0})"),
    _function("asinh", "asinh({0})"),
    _function("acosh", _ACOSH),
    _function("atanh", f"{_ATANH}({{0}})"),
    _function("hypot", f"{_HYPOT}({{0}}, {{1}})", kinds="dd"),
    _function("degrees", "({0} * 57.29577951308232e0)"),
    _function("radians", "({0} * 0.017453292519943295e0)"),
    _constant("pi", math.pi),
    _constant("e", math.e),
)
