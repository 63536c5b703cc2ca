"""Statistics of many rows: spread, correlation, shape, and percentiles.

Sums of doubles are added in any order, in every engine, so the last digits of these are nobody's promise; percentiles
and medians are values of the column or between two of them, and exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.aggregate import aggregate_function, average, average_form
from headwater.sql.functions.function import AggregateForm, Apply, Builder, ByOrder, Function
from headwater.sql.interval_types import is_interval
from headwater.sql.nodes import AggregateCall, Call, Literal, Node, Refused, WindowCall
from headwater.sql.operators import cases, is_null, negate
from headwater.sql.types import DOUBLE, array_of, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS", "mode_form"]

_Many = AggregateCall | WindowCall
_DIGITS = "the last digits of a double depend on the order of the rows, in every engine"


def _double(node: Node, name: str) -> Node:
    if family(node.dtype) not in ("integer", "float", "decimal", "string", "null"):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "cast it to a number first")
    return cast(node, DOUBLE)


def _doubles(name: str) -> Builder:
    return lambda args: AggregateCall(name, tuple(_double(x, name) for x in args), DOUBLE)


def _plain(function: str) -> AggregateForm:
    return lambda _, a, apply: apply(function, *a)


def _moments(values: list[float | None]) -> tuple[int, float, list[float]] | None:
    kept = [v for v in values if v is not None]
    if not kept:
        return None
    mean = math.fsum(kept) / len(kept) if all(map(math.isfinite, kept)) else math.nan
    return len(kept), mean, [v - mean for v in kept]


def _skewness(values: list[float | None]) -> float | None:
    found = _moments(values)
    if found is None:
        return None
    count, _, spread = found
    second, third = math.fsum(d * d for d in spread), math.fsum(d**3 for d in spread)
    if second == 0:
        return None
    return math.sqrt(count) * third / math.sqrt(second**3)


def _kurtosis(values: list[float | None]) -> float | None:
    found = _moments(values)
    if found is None:
        return None
    count, _, spread = found
    second, fourth = math.fsum(d * d for d in spread), math.fsum(d**4 for d in spread)
    return None if second == 0 else count * fourth / (second * second) - 3.0


def _sorted(values: list[float | None]) -> list[float]:
    # NaN is above every number, and -0.0 is before 0.0, whatever the order in which they come.
    return sorted((v for v in values if v is not None), key=lambda v: (math.isnan(v), v, math.copysign(1.0, v)))


def _percentile(values: list[float | None], share: float) -> float | None:
    kept = _sorted(values)
    if not kept:
        return None
    place = (len(kept) - 1) * share
    low, high = math.floor(place), math.ceil(place)
    if low == high or kept[low] == kept[high]:
        return kept[low]
    return (high - place) * kept[low] + (place - low) * kept[high]


def _continuous(values: list[float | None], share: float, descending: bool) -> float | None:
    return _percentile(values, 1 - share if descending else share)


def _discrete(values: list[float | None], share: float, descending: bool) -> float | None:
    kept = _sorted(values)
    if not kept:
        return None
    kept = kept[::-1] if descending else kept
    return kept[max(0, math.ceil(share * len(kept)) - 1)]


def _checked(share: float) -> float:
    if not 0 <= share <= 1:
        raise Failed("a percentile outside 0 to 1")
    return share


_LISTS = {
    name: define(name, "DOUBLE[]", DOUBLE, body) for name, body in (("skewness", _skewness), ("kurtosis", _kurtosis))
}
_PERCENTILE = define("percentile", "DOUBLE[] DOUBLE", DOUBLE, lambda xs, p: _percentile(xs, _checked(p)))


_CONT = define("percentile_cont", "DOUBLE[] DOUBLE BOOLEAN", DOUBLE, _continuous)
_DISC = define("percentile_disc", "DOUBLE[] DOUBLE BOOLEAN", DOUBLE, _discrete)


def _list_form(name: str) -> AggregateForm:
    return lambda _, a, apply: f"{_LISTS[name]}({apply('list', a[0])})"


def _percentile_call(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        share = args[1] if len(args) == 2 else Literal(0.5, DOUBLE)
        if isinstance(share, Call) and share.op == "array" and name == "percentile":
            each = [build((args[0], part)) for part in share.args]
            shares = [part.args[1] for part in each if isinstance(part, AggregateCall)]
            return AggregateCall("percentile", (_double(args[0], name), *shares), array_of(DOUBLE))
        if len(args) == 1 and name != "median":
            raise Refused(f"{name}() with 1 argument", "it takes a column and a share from 0 to 1")
        if not isinstance(share, Literal) or family(share.dtype) not in ("integer", "float", "decimal"):
            raise Refused(f"{name}() of a share that is not one constant", f"write {name}(x, 0.5)")
        found = cast(share, DOUBLE)
        if not isinstance(found, Literal) or not isinstance(found.value, float) or not 0 <= found.value <= 1:
            raise Refused(f"{name}() of a share outside 0 to 1", f"write {name}(x, 0.5)")
        return AggregateCall("percentile", (_double(args[0], name), found), DOUBLE)

    return build


def _ordered(name: str) -> Builder:
    """percentile_cont(p) and percentile_disc(p) WITHIN GROUP (ORDER BY x): the share, the value, and the direction."""

    def build(args: Sequence[Node]) -> Node:
        share, value, descending, *_ = args
        plain = _percentile_call(name)((value, share))
        assert isinstance(plain, AggregateCall)
        return AggregateCall(name, (*plain.args, descending), DOUBLE)

    return build


def _ordered_form(udf: str) -> AggregateForm:
    return lambda _, a, apply: f"{udf}({apply('list', a[0])}, {a[1]}, {a[2]})"


def _percentile_form(node: _Many, a: list[str], apply: Apply) -> str:
    values = apply("list", a[0])
    found = [f"{_PERCENTILE}({values}, {share})" for share in a[1:]]
    if node.dtype == DOUBLE:
        return found[0]
    # Of no values it is a null, and no array of nulls.
    return f"(CASE WHEN {found[0]} IS NOT NULL THEN [{', '.join(found)}] END)"


def _mode(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) in ("nested", "float"):
        raise Refused(f"mode() of {name_of(args[0].dtype)}", "use a column of plain values")
    given = args[1:2] if args[1:] else ()
    if not given:
        return AggregateCall("mode", (args[0],), args[0].dtype)
    if not isinstance(given[0], Literal) or not isinstance(given[0].value, bool):
        raise Refused("mode() with a second argument that is no TRUE or FALSE", "write mode(x, TRUE)")
    # mode(x, TRUE) is the least of the most frequent values; in an order, the first of them by it.
    ops = ("mode least", "mode greatest") if len(args) == 3 else ("mode", "mode least")
    return AggregateCall(ops[given[0].value], (args[0],), args[0].dtype)


def mode_form(choice: str) -> AggregateForm:
    """The least or the greatest of the most frequent values: ``list_min`` or ``list_max``."""

    def form(_: _Many, a: list[str], apply: Apply) -> str:
        counts = apply("histogram", a[0])
        frequent = f"list_filter(map_entries({counts}), lambda e: e.value = list_max(map_values({counts})))"
        return f"{choice}(list_transform({frequent}, lambda e: e.key))"

    return form


def _function(
    name: str,
    build: Builder,
    form: AggregateForm,
    least: int = 1,
    most: int | None = None,
    note: str = _DIGITS,
    by_order: ByOrder = "no",
    empty: object = None,
) -> Function:
    return aggregate_function(
        name, build, form, least=least, most=most or least, note=note, by_order=by_order, empty=empty
    )


_SPREADS = {
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
}
_PAIRS = ("covar_pop", "covar_samp", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy", "regr_syy")


def _corr_form(_: _Many, a: list[str], apply: Apply) -> str:
    # Spark divides by a spread of zero, and stops; of one pair there is no correlation.
    found, count = apply("corr", *a), apply("regr_count", *a)
    why = raise_form("division by zero in corr(): a column does not vary")
    return f"(CASE WHEN {count} <= 1 THEN NULL WHEN isnan({found}) THEN {why} ELSE {found} END)"


def _slope_form(_: _Many, a: list[str], apply: Apply) -> str:
    return f"(CASE WHEN {apply('regr_sxx', *a)} = 0 THEN NULL ELSE {apply('regr_slope', *a)} END)"


def _average_of(at: int) -> Builder:
    """The average of one side of the pairs that are whole."""

    def build(args: Sequence[Node]) -> Node:
        for arg in args:
            if is_interval(arg.dtype):
                raise Refused(f"regr_avg of {name_of(arg.dtype)}", "cast it to a number first")
        return average([cases([(negate(is_null(args[1 - at])), args[at])], None)])

    return build


def _count_pairs(_: _Many, a: list[str], apply: Apply) -> str:
    return f"CAST({apply('regr_count', a[0], a[1])} AS BIGINT)"


FUNCTIONS: tuple[Function, ...] = (
    *(_function(name, _doubles(op), _plain(op)) for name, op in _SPREADS.items()),
    *(_function(name, _doubles(name), _plain(name), 2) for name in _PAIRS),
    _function("corr", _doubles("corr"), _corr_form, 2),
    _function("regr_slope", _doubles("regr_slope"), _slope_form, 2),
    _function("regr_avgx", _average_of(1), average_form, 2),
    _function("regr_avgy", _average_of(0), average_form, 2),
    _function(
        "regr_count",
        lambda args: AggregateCall("regr_count", tuple(_double(x, "regr_count") for x in args), pa.int64()),
        _count_pairs,
        2,
        note="",
        empty=0,
    ),
    _function("skewness", _doubles("skewness"), _list_form("skewness")),
    _function("kurtosis", _doubles("kurtosis"), _list_form("kurtosis")),
    _function("median", _percentile_call("median"), _percentile_form, note=""),
    _function(
        "percentile",
        _percentile_call("percentile"),
        _percentile_form,
        1,
        2,
        note="of constant shares",
    ),
    _function(
        "percentile_cont", _ordered("percentile_cont"), _ordered_form(_CONT), 4, note="WITHIN GROUP (ORDER BY x)"
    ),
    _function(
        "percentile_disc", _ordered("percentile_disc"), _ordered_form(_DISC), 4, note="WITHIN GROUP (ORDER BY x)"
    ),
    _function(
        "mode",
        _mode,
        _plain("mode"),
        1,
        3,
        note="of several values that are equally frequent, any one; with TRUE or an order, the first of them",
        by_order="extreme",
    ),
)
