"""The aggregates by their names in Spark SQL.

`aggregation` is the one place where a name becomes an `Aggregation`: for SQL and for the builder of circuits alike.
Which arguments a function takes and of which type its result is, is decided by the catalogue of
`headwater.sql.functions`; here it is decided how it is kept. A column that Spark would cast first (a string that is
added up) is refused: the cast belongs before the aggregate, where it can fail for a row.

Some have more than one answer in Spark and one here, always the same for the same rows:

- first, any_value and last without an order give the least and the greatest value, with one the values of the first and
  last row, and of rows that tie the one with the least or the greatest value; min_by and max_by likewise;
- collect_list and listagg are sorted by the order given, then by the value; collect_set by the value;
- mode is the least of the most frequent values;
- approx_count_distinct and approx_percentile are exact, which is within what they promise;
- sums of floats, and all that is made of them, are rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

import pyarrow as pa

from headwater.base.errors import ExpressionError, NotFoundError, UnsupportedError
from headwater.incremental.aggregates.aggregation import Aggregation, Extreme
from headwater.incremental.aggregates.bits import Bits
from headwater.incremental.aggregates.decimals import AverageDecimal, SumDecimal
from headwater.incremental.aggregates.doubles import AverageDouble, SumDouble
from headwater.incremental.aggregates.general import Collect, ListAgg
from headwater.incremental.aggregates.linear import Average, BoolAnd, BoolOr, Count, CountIf, CountRows, Sum
from headwater.incremental.aggregates.mode import Mode
from headwater.incremental.aggregates.moments import MOMENTS, Moment
from headwater.incremental.aggregates.quantile import Quantile
from headwater.incremental.layout import Order
from headwater.sql.calls import apply_aggregate
from headwater.sql.nodes import AggregateCall, Call, Column, Literal, Node, Refused, Wrong
from headwater.sql.types import BOOLEAN, DOUBLE, family, name_of

__all__ = ["NAMES", "aggregation"]

_ALIASES = {
    "arg_min": "min_by",
    "arg_max": "max_by",
    "mean": "avg",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "first_value": "first",
    "last_value": "last",
    "array_agg": "collect_list",
    "string_agg": "listagg",
    "percentile_approx": "approx_percentile",
    "try_avg": "avg",
}


@dataclass(frozen=True)
class _Call:
    """What was asked for."""

    function: str
    name: str
    columns: tuple[str, ...]
    dtypes: tuple[pa.DataType, ...]
    distinct: bool
    where: str | None
    order: tuple[Order, ...]
    shares: tuple[float, ...]
    many: bool
    separator: str
    ignore_nulls: bool

    @property
    def text(self) -> str:
        return f"{self.function}({'DISTINCT ' * self.distinct}{', '.join(self.columns) or '*'})"


def aggregation(
    function: str,
    column: str | Sequence[str] = (),
    *,
    schema: pa.Schema,
    name: str | None = None,
    distinct: bool = False,
    where: str | None = None,
    order: Sequence[Order] = (),
    share: float | Sequence[float] | None = None,
    separator: str = "",
    ignore_nulls: bool = False,
) -> Aggregation:
    """An aggregate of Spark's by its name, over columns of a schema.

    Parameters
    ----------
    function : str
        ``"sum"``, ``"count"``, …: see `NAMES`
    column : str or sequence of str
        its arguments; none for ``count(*)``
    schema : pa.Schema
        of the rows
    name : str
        of the column that it gives; the call's text if it is not given
    distinct : bool
        do rows with equal arguments count once?
    where : str
        a column of booleans: only rows in which it is true count
    order : sequence of Order
        for first, last, collect_list and listagg; the direction of percentile_cont and percentile_disc
    share : float or sequence of float
        of percentiles, from 0 to 1; of several an array is given
    separator : str
        of listagg
    ignore_nulls : bool
        for first and last in an order: are rows without a value passed over?

    Examples
    --------
    >>> rows = pa.schema([("v", pa.int32()), ("p", pa.decimal128(10, 2))])
    >>> aggregation("sum", "p", schema=rows).field.type, aggregation("avg", "v", schema=rows).field.type
    (Decimal128Type(decimal128(20, 2)), DataType(double))
    >>> aggregation("count", schema=rows, name="n").field
    pyarrow.Field<n: int64 not null>
    """
    columns = (column,) if isinstance(column, str) else tuple(column)
    key = function.lower()
    key = _ALIASES.get(key, key)
    known = list(schema.names)
    for one in (*columns, *(o.column for o in order), *([where] if where is not None else [])):
        if one not in known:
            raise NotFoundError.column(one, known)
    shares = () if share is None else (share,) if isinstance(share, int | float) else tuple(share)
    dtypes = tuple(schema.field(c).type for c in columns)
    many = not isinstance(share, int | float) and share is not None
    text = f"{function.lower()}({'DISTINCT ' * distinct}{', '.join(columns) or '*'})"
    call = _Call(
        key, name or text, columns, dtypes, distinct, where, tuple(order), shares, many, separator, ignore_nulls
    )
    if where is not None and schema.field(where).type != BOOLEAN:
        raise ExpressionError.not_boolean(where, name_of(schema.field(where).type))
    try:
        typed = _typed(call, schema)
        return _MAKERS[key](call, typed) if key in _MAKERS else _refused(call)
    except Wrong as wrong:
        raise ExpressionError.wrong(text, wrong.what, wrong.hint) from None
    except Refused as refused:
        raise ExpressionError.refused(text, refused.what, refused.hint) from None


def _refused(call: _Call) -> Aggregation:
    raise Refused(f"{call.function}() of changing rows", "write it with other aggregates")


def _typed(call: _Call, schema: pa.Schema) -> AggregateCall:
    """The call as the catalogue types it; it raises what it does not take."""
    key = call.function
    # These read a decimal as the number it is, so that it does not matter how an engine would make a double of it.
    free = key in MOMENTS or key.startswith("percentile") or key == "median"
    typed = [DOUBLE if free and pa.types.is_decimal(t) else t for t in call.dtypes]
    args: list[Node] = [
        Column(None, (c,), t, schema.field(c).nullable) for c, t in zip(call.columns, typed, strict=True)
    ]
    if key in {"percentile", "percentile_cont", "percentile_disc", "approx_percentile"}:
        if not call.shares:
            raise Wrong(f"{key}() needs a share", "give share=0.5, for example")
        if not all(0 <= s <= 1 for s in call.shares):
            raise Wrong(f"{key}() of a share outside 0 to 1", "write 0.5 for the middle")
    if key == "approx_percentile":
        return _ranked(call, args)
    if key in {"percentile_cont", "percentile_disc"}:
        descending = Literal(any(o.descending for o in call.order), BOOLEAN)
        found = apply_aggregate(
            key, [Literal(float(call.shares[0]), DOUBLE), *args, descending, Literal(False, BOOLEAN)]
        )
    elif key == "percentile":
        found = apply_aggregate(key, [*args, Literal(float(call.shares[0]), DOUBLE)])
    elif key == "listagg":
        found = apply_aggregate(key, [*args, Literal(call.separator, pa.string())])
    else:
        found = apply_aggregate(key, args)
    for given, node in zip(args, found.args, strict=False):
        if isinstance(node, Call) and node.op == "cast" and family(given.dtype) in {"string", "null"}:
            raise Refused(f"{key}() of {name_of(given.dtype)}", f"cast it to {name_of(node.dtype)} first")
    return found


def _ranked(call: _Call, args: Sequence[Node]) -> AggregateCall:
    dtype = call.dtypes[0] if len(args) == 1 else pa.null()
    if family(dtype) not in {"integer", "float", "decimal", "date", "timestamp"}:
        raise Refused(
            f"approx_percentile() of {', '.join(map(name_of, call.dtypes)) or 'nothing'}",
            "pass one number, date or timestamp",
        )
    return AggregateCall("approx_percentile", tuple(args), dtype)


# -- one maker for each way of keeping ---------------------------------------------------------------------------------


def _count(call: _Call, _: AggregateCall) -> Aggregation:
    if not call.columns:
        if call.distinct:
            raise Wrong("count(DISTINCT *) needs columns", "name the columns")
        return CountRows(call.name, where=call.where)
    return Count(call.name, *call.columns, where=call.where, distinct=call.distinct)


def _sum(call: _Call, typed: AggregateCall) -> Aggregation:
    column, dtype = call.columns[0], call.dtypes[0]
    lenient = call.function == "try_sum"
    if pa.types.is_decimal(dtype):
        return SumDecimal(call.name, column, dtype, lenient, where=call.where, distinct=call.distinct)
    if typed.dtype == DOUBLE:
        return SumDouble(call.name, column, where=call.where, distinct=call.distinct)
    return Sum(call.name, column, lenient, where=call.where, distinct=call.distinct)


def _average(call: _Call, _: AggregateCall) -> Aggregation:
    column, dtype = call.columns[0], call.dtypes[0]
    if pa.types.is_decimal(dtype):
        return AverageDecimal(call.name, column, dtype, where=call.where, distinct=call.distinct)
    if pa.types.is_floating(dtype):
        return AverageDouble(call.name, column, where=call.where, distinct=call.distinct)
    return Average(call.name, column, where=call.where, distinct=call.distinct)


def _truth(call: _Call, _: AggregateCall) -> Aggregation:
    made: Mapping[str, Callable[..., Aggregation]] = {"count_if": CountIf, "bool_and": BoolAnd, "bool_or": BoolOr}
    return made[call.function](call.name, call.columns[0], where=call.where, distinct=call.distinct)


_BITS: Mapping[str, OneOf["and", "or", "xor"]] = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor"}


def _bits(call: _Call, typed: AggregateCall) -> Aggregation:
    how = _BITS[call.function]
    return Bits(call.name, call.columns[0], typed.dtype, how, where=call.where, distinct=call.distinct)


def _moment(call: _Call, _: AggregateCall) -> Aggregation:
    return Moment(call.name, call.function, call.columns, call.dtypes, where=call.where, distinct=call.distinct)


def _ordered(call: _Call, *columns: str) -> None:
    for c, dtype in zip(call.columns, call.dtypes, strict=True):
        if c in columns and pa.types.is_nested(dtype):
            what, why = f"{call.function}() of {name_of(dtype)}", "such values have no order in a circuit"
            raise UnsupportedError.operation(what, why, "compare one of its parts").about(call.function)


def _extreme(call: _Call, typed: AggregateCall) -> Aggregation:
    _ordered(call, *call.columns)
    return Extreme(call.name, call.columns[0], typed.dtype, call.function == "max", where=call.where)


def _by(call: _Call, typed: AggregateCall) -> Aggregation:
    value, by = call.columns
    _ordered(call, by)
    last = call.function == "max_by"
    if value == by:
        return Extreme(call.name, value, typed.dtype, last, where=call.where)
    return Extreme(call.name, value, typed.dtype, last, (Order(by),), (by,), where=call.where)


def _picked(call: _Call, typed: AggregateCall) -> Aggregation:
    column = call.columns[0]
    last = call.function == "last"
    if not call.order or call.function == "any_value":
        _ordered(call, column)
        return Extreme(call.name, column, typed.dtype, last, where=call.where)
    needed = (column,) if call.ignore_nulls else ()
    return Extreme(call.name, column, typed.dtype, last, call.order, needed, where=call.where)


def _distinct_count(call: _Call, _: AggregateCall) -> Aggregation:
    return Count(call.name, *call.columns, where=call.where, distinct=True)


def _collected(call: _Call, typed: AggregateCall) -> Aggregation:
    unique = call.distinct or call.function == "collect_set"
    if unique and any(o.column != call.columns[0] for o in call.order):
        raise Refused(f"{call.function}(DISTINCT …) in the order of another column", "order by the column itself")
    return Collect(call.name, call.columns[0], typed.dtype.value_type, call.order, where=call.where, distinct=unique)


def _joined(call: _Call, _: AggregateCall) -> Aggregation:
    if call.distinct and any(o.column != call.columns[0] for o in call.order):
        raise Refused("listagg(DISTINCT …) in the order of another column", "order by the column itself")
    return ListAgg(call.name, call.columns[0], call.separator, call.order, where=call.where, distinct=call.distinct)


def _mode(call: _Call, typed: AggregateCall) -> Aggregation:
    if call.distinct:  # all are equally frequent
        return Extreme(call.name, call.columns[0], typed.dtype, last=False, where=call.where)
    return Mode(call.name, call.columns[0], typed.dtype, where=call.where)


def _quantile(call: _Call, _: AggregateCall) -> Aggregation:
    exact = call.function in {"approx_percentile", "percentile_disc"}
    descending = call.function in {"percentile_cont", "percentile_disc"} and any(o.descending for o in call.order)
    return Quantile(
        call.name,
        call.columns[0],
        call.dtypes[0],
        "discrete" if exact else "continuous",
        call.shares or (0.5,),
        descending,
        call.many,
        call.function == "percentile_disc",
        call.function,
        where=call.where,
        distinct=call.distinct,
    )


def _pairs(call: _Call, _: AggregateCall) -> Aggregation:
    return Count(call.name, *call.columns, where=call.where, distinct=call.distinct)


_MAKERS: dict[str, Callable[[_Call, AggregateCall], Aggregation]] = {
    "count": _count,
    "sum": _sum,
    "try_sum": _sum,
    "avg": _average,
    "count_if": _truth,
    "bool_and": _truth,
    "bool_or": _truth,
    "bit_and": _bits,
    "bit_or": _bits,
    "bit_xor": _bits,
    "min": _extreme,
    "max": _extreme,
    "min_by": _by,
    "max_by": _by,
    "first": _picked,
    "last": _picked,
    "any_value": _picked,
    "approx_count_distinct": _distinct_count,
    "collect_list": _collected,
    "collect_set": _collected,
    "listagg": _joined,
    "mode": _mode,
    "median": _quantile,
    "percentile": _quantile,
    "percentile_cont": _quantile,
    "percentile_disc": _quantile,
    "approx_percentile": _quantile,
    "regr_count": _pairs,
    **dict.fromkeys(MOMENTS, _moment),
}
NAMES: tuple[str, ...] = tuple(sorted({*_MAKERS, *_ALIASES}))
"""The names that `aggregation` knows."""
