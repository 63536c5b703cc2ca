"""The functions an expression may call today, by Spark's name.

Each entry takes typed arguments and gives a node. What is not listed is refused by name; a whole
catalogue of functions is a room of its own, and this table is its first page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.base.errors import did_you_mean
from headwater.sql.casts import cast
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.operators import arithmetic, cases, compare, is_null, negate, united
from headwater.sql.types import BOOLEAN, DATE, INT, NULL, STRING, family, name_of

__all__ = ["FUNCTIONS", "UNSTABLE", "apply_function"]

Builder = Callable[[Sequence[Node]], Node]

_UNSTABLE_NAMES = """
    current_timestamp current_date current_time current_user current_timezone localtimestamp now curdate
    rand random randn uuid shuffle user session_user unix_timestamp monotonically_increasing_id
    input_file_name spark_partition_id randstr uniform
"""
_MANY_ROW_NAMES = """
    any any_value approx_count_distinct array_agg avg bool_and bool_or collect_list collect_set corr
    count count_if every first first_value kurtosis last last_value max max_by mean median min min_by
    mode percentile skewness some std stddev sum variance row_number rank dense_rank lag lead ntile
    percent_rank cume_dist nth_value
"""
UNSTABLE = frozenset(_UNSTABLE_NAMES.split())
_MANY_ROWS = frozenset(_MANY_ROW_NAMES.split())


def apply_function(name: str, args: Sequence[Node]) -> Node:
    """Call a function by name, or refuse it with the nearest known name.

    >>> apply_function("length", [Literal("abc", pa.string())]).dtype
    DataType(int32)
    """
    key = name.lower()
    if key in FUNCTIONS:
        builder, least, most = FUNCTIONS[key]
        if not least <= len(args) <= most:
            raise Refused(f"{key}() with {len(args)} argument(s)", f"it takes {_arity(least, most)}")
        return builder(args)
    if key in UNSTABLE:
        raise Refused(f"{key}(), which gives another answer at each run,", "pass its value as a constant")
    if key in _MANY_ROWS:
        raise Refused(f"the aggregate or window function {key}()", "an expression sees one row at a time")
    near = did_you_mean(key, FUNCTIONS)
    raise Refused(
        f"the function {key}()", (f"did you mean `{near}`? " if near else "") + "known: " + ", ".join(sorted(FUNCTIONS))
    )


def _arity(least: int, most: int) -> str:
    if least == most:
        return str(least)
    return f"{least} or more" if most > 99 else f"{least} to {most}"


def _coalesce(args: Sequence[Node]) -> Node:
    same = united(args, "coalesce")
    return call("coalesce", same, same[0].dtype)


def _nullif(args: Sequence[Node]) -> Node:
    left, right = args
    return cases([(compare("=", left, right), Literal(None, NULL))], left)


def _if(args: Sequence[Node]) -> Node:
    return cases([(args[0], args[1])], args[2])


def _concat(args: Sequence[Node]) -> Node:
    if args and all(family(a.dtype) == "binary" for a in args):
        return call("||", tuple(args), pa.binary()) if len(args) > 1 else args[0]
    texts = tuple(cast(a, STRING) for a in args)
    if len(texts) < 2:
        return texts[0] if texts else Literal("", STRING)
    return call("||", texts, STRING)


def _letters(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        return call(op, (cast(args[0], STRING),), STRING, fallible=True)

    return build


def _length(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) == "binary":
        return call("octet_length", (args[0],), INT)
    return call("length", (cast(args[0], STRING),), INT)


def _abs(args: Sequence[Node]) -> Node:
    kind = family(args[0].dtype)
    if kind not in ("integer", "float", "decimal"):
        raise Refused(f"abs() of {name_of(args[0].dtype)}", "pass a number")
    return call("abs", (args[0],), args[0].dtype, fallible=kind == "integer")


def _isnan(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) != "float":
        raise Refused(f"isnan() of {name_of(args[0].dtype)}", "pass a float or a double")
    return call("isnan", (args[0],), BOOLEAN)


def _extreme(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        for arg in args:
            if family(arg.dtype) == "nested":
                raise Refused(f"{op}() of {name_of(arg.dtype)}", "compare its fields one by one")
        same = united(args, f"{op}()", promote_text=False)
        return call(op, same, same[0].dtype)

    return build


def _as_date(node: Node, what: str) -> Node:
    if family(node.dtype) == "date" or isinstance(node, Literal):
        return cast(node, DATE)
    raise Refused(f"{what} of {name_of(node.dtype)}", "cast it to a date first: CAST(x AS DATE)")


def _part(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        (arg,) = args
        if family(arg.dtype) in ("timestamp", "timestamp_ntz"):
            arg = cast(arg, DATE)
        return call(op, (_as_date(arg, f"{op}()"),), INT)

    return build


def _shift(sign: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        day, count = _as_date(args[0], "date_add()"), args[1]
        if count.dtype not in (pa.int8(), pa.int16(), INT, NULL):
            raise Refused(f"date_add() with a count of type {name_of(count.dtype)}", "cast the count to int")
        return call(f"date {sign}", (day, cast(count, INT)), DATE, fallible=True)

    return build


def _datediff(args: Sequence[Node]) -> Node:
    return call("datediff", tuple(_as_date(a, "datediff()") for a in args), INT, fallible=True)


_MANY = 10_000
FUNCTIONS: dict[str, tuple[Builder, int, int]] = {
    "abs": (_abs, 1, 1),
    "coalesce": (_coalesce, 1, _MANY),
    "concat": (_concat, 0, _MANY),
    "date_add": (_shift("+"), 2, 2),
    "date_diff": (_datediff, 2, 2),
    "date_sub": (_shift("-"), 2, 2),
    "datediff": (_datediff, 2, 2),
    "day": (_part("day"), 1, 1),
    "dayofmonth": (_part("day"), 1, 1),
    "greatest": (_extreme("greatest"), 2, _MANY),
    "if": (_if, 3, 3),
    "ifnull": (_coalesce, 2, 2),
    "isnan": (_isnan, 1, 1),
    "isnotnull": (lambda args: negate(is_null(args[0])), 1, 1),
    "isnull": (lambda args: is_null(args[0]), 1, 1),
    "least": (_extreme("least"), 2, _MANY),
    "length": (_length, 1, 1),
    "lower": (_letters("lower"), 1, 1),
    "mod": (lambda args: arithmetic("%", args[0], args[1]), 2, 2),
    "month": (_part("month"), 1, 1),
    "nullif": (_nullif, 2, 2),
    "nvl": (_coalesce, 2, 2),
    "upper": (_letters("upper"), 1, 1),
    "year": (_part("year"), 1, 1),
}
