"""Aggregates: Spark's classes by the names under which the catalogue knows them."""

from __future__ import annotations

from dataclasses import replace

from headwater.sql.analyzed.functions import check_flags
from headwater.sql.analyzed.operators import mode_of
from headwater.sql.analyzed.reading import Expressions, expression, refused
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_aggregate
from headwater.sql.nodes import AggregateCall, Literal, Node, Refused
from headwater.sql.types import BOOLEAN, DOUBLE, STRING, is_key, name_of

__all__ = ["aggregate_call"]

_NAMES = {
    "ApproximatePercentile": "approx_percentile",
    "BitAndAgg": "bit_and",
    "BitOrAgg": "bit_or",
    "BitXorAgg": "bit_xor",
    "BitmapAndAgg": "bitmap_and_agg",
    "BitmapConstructAgg": "bitmap_construct_agg",
    "BitmapOrAgg": "bitmap_or_agg",
    "BoolAnd": "bool_and",
    "BoolOr": "bool_or",
    "Corr": "corr",
    "CountIf": "count_if",
    "CovPopulation": "covar_pop",
    "CovSample": "covar_samp",
    "Kurtosis": "kurtosis",
    "Max": "max",
    "MaxBy": "max_by",
    "Median": "median",
    "Min": "min",
    "MinBy": "min_by",
    "RegrAvgX": "regr_avgx",
    "RegrAvgY": "regr_avgy",
    "RegrCount": "regr_count",
    "RegrIntercept": "regr_intercept",
    "RegrR2": "regr_r2",
    "RegrSXX": "regr_sxx",
    "RegrSXY": "regr_sxy",
    "RegrSYY": "regr_syy",
    "RegrSlope": "regr_slope",
    "Skewness": "skewness",
    "StddevPop": "stddev_pop",
    "StddevSamp": "stddev_samp",
    "VariancePop": "var_pop",
    "VarianceSamp": "var_samp",
}
_PICKED = {"First": "first", "Last": "last", "AnyValue": "any_value"}


@expression("AggregateExpression")
def aggregate_call(reader: Expressions, tree: Tree) -> AggregateCall:
    """The call, with its DISTINCT and FILTER."""
    function, *filters = tree.children
    found = _call(reader, function)
    distinct = bool(tree.fields.get("isDistinct"))
    if distinct and not all(is_key(a.dtype) for a in found.args):
        raise Refused(f"{found.op}(DISTINCT …) of {name_of(found.args[0].dtype)}", "count its fields")
    if distinct and found.op in ("min", "max"):
        distinct = False  # it changes nothing
    return replace(found, distinct=distinct, where=reader.read(filters[0]) if filters else None)


def _call(reader: Expressions, tree: Tree) -> AggregateCall:
    check_flags(tree)
    kind = tree.kind
    if kind in _NAMES:
        return apply_aggregate(_NAMES[kind], reader.children(tree))
    if kind in _PICKED:
        skip = [Literal(True, BOOLEAN)] if tree.fields.get("ignoreNulls") else []
        return apply_aggregate(_PICKED[kind], [*reader.children(tree)[:1], *skip])
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(reader, tree)
    if "replacement" in tree.fields and len(tree.children) == 1:
        return _call(reader, tree.children[0])
    raise refused(kind)


def _count(reader: Expressions, tree: Tree) -> AggregateCall:
    given = reader.children(tree)
    # count(*) is count(1), and so is count of any other constant that is no null.
    if all(isinstance(a, Literal) and a.value is not None for a in given):
        given = []
    return apply_aggregate("count", given)


def _sum(reader: Expressions, tree: Tree) -> AggregateCall:
    name = {"Sum": "sum", "Average": "avg"}[tree.kind]
    return apply_aggregate(f"try_{name}" if mode_of(tree) == "TRY" else name, reader.children(tree))


def _collected(reader: Expressions, tree: Tree) -> AggregateCall:
    if not tree.fields.get("ignoreNulls", True):
        raise Refused(f"Spark's {tree.kind} with nulls", "leave RESPECT NULLS out")
    return apply_aggregate("collect_list" if tree.kind == "CollectList" else "collect_set", reader.children(tree))


def _percentile(reader: Expressions, tree: Tree) -> AggregateCall:
    value, share, *frequency = reader.children(tree)
    if tree.fields.get("reverse") or any(not isinstance(f, Literal) or f.value != 1 for f in frequency):
        raise Refused("percentile() with a frequency or in reverse", "write percentile(x, 0.5)")
    return apply_aggregate("percentile", [value, share])


def _ordered(reader: Expressions, tree: Tree) -> AggregateCall:
    value, share = reader.children(tree)
    if tree.fields.get("legacyCalculation"):
        raise Refused("percentile_disc() as it was before Spark 4", "leave the setting as it is")
    down = bool(tree.fields.get("reverse"))
    name = "percentile_cont" if tree.kind == "PercentileCont" else "percentile_disc"
    return apply_aggregate(name, [share, value, Literal(down, BOOLEAN), Literal(not down, BOOLEAN)])


def _approximate(reader: Expressions, tree: Tree) -> AggregateCall:
    error = float(tree.fields["relativeSD"])
    return apply_aggregate("approx_count_distinct", [*reader.children(tree), Literal(error, DOUBLE)])


def _mode(reader: Expressions, tree: Tree) -> AggregateCall:
    (value,) = reader.children(tree)
    ascending = tree.fields.get("reverseOpt")
    if ascending is None:
        return apply_aggregate("mode", [value])
    return apply_aggregate("mode", [value, *(Literal(flag, BOOLEAN) for flag in (not ascending, bool(ascending)))])


def _several_by(reader: Expressions, tree: Tree) -> AggregateCall:
    return apply_aggregate("min_by" if tree.fields["reverse"] else "max_by", reader.children(tree))


def _listagg(reader: Expressions, tree: Tree) -> AggregateCall:
    text, mark, *orders = tree.children
    separator = reader.read(mark)
    if isinstance(separator, Literal) and separator.value is None:
        separator = Literal("", STRING)
    given: list[Node] = [reader.read(text), separator]
    if len(orders) > 1:
        raise Refused("listagg() in the order of several keys", "order by one key")
    for order in orders:
        flags = (order.fields["direction"] == "Descending", order.fields["nullOrdering"] == "NullsFirst")
        given += [reader.read(order.children[0]), *(Literal(f, BOOLEAN) for f in flags)]
    return apply_aggregate("listagg", given)


_SPECIAL = {
    "Count": _count,
    "Sum": _sum,
    "Average": _sum,
    "CollectList": _collected,
    "CollectSet": _collected,
    "Percentile": _percentile,
    "PercentileCont": _ordered,
    "PercentileDisc": _ordered,
    "HyperLogLogPlusPlus": _approximate,
    "Mode": _mode,
    "MaxMinByK": _several_by,
    "ListAgg": _listagg,
}
