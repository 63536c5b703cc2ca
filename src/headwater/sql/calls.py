"""How a function of the catalogue is called by name.

Its arguments are folded and counted before it sees them. What the catalogue does not have is refused with the nearest
known name: no call is ever passed through to an engine.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import Action, did_you_mean
from headwater.sql.folding import folded
from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS, MANY_ROWS, UNSTABLE
from headwater.sql.functions.function import Function
from headwater.sql.nodes import AggregateCall, Node, Refused, Wrong

__all__ = ["apply_aggregate", "apply_function"]


def apply_function(name: str, args: Sequence[Node]) -> Node:
    """Call a function of one row by name, or refuse it with the nearest known name.

    >>> from headwater.sql.nodes import Literal
    >>> import pyarrow as pa
    >>> apply_function("length", [Literal("abc", pa.string())]).dtype
    DataType(int32)
    """
    key = name.lower()
    if key in FUNCTIONS:
        return _built(FUNCTIONS[key], args)
    if key in UNSTABLE:
        raise Refused(f"{key}(), which gives another answer at each run,", "pass its value as a constant")
    if key in MANY_ROWS or key in AGGREGATES:
        raise Refused(f"the aggregate or window function {key}()", "an expression sees one row at a time")
    raise _unknown(key)


def apply_aggregate(name: str, args: Sequence[Node]) -> AggregateCall:
    """Call an aggregate or a window function by name."""
    key = name.lower()
    if key not in AGGREGATES:
        raise _unknown(key)
    found = _built(AGGREGATES[key], args)
    assert isinstance(found, AggregateCall)
    return found


def _built(function: Function, args: Sequence[Node]) -> Node:
    if not function.least <= len(args) <= function.most:
        hint = f"it takes {_arity(function.least, function.most)}"
        raise Refused(f"{function.name}() with {len(args)} argument(s)", hint)
    return function.build([folded(a) for a in args])


def _unknown(key: str) -> Refused:
    near = did_you_mean(key, [*FUNCTIONS, *AGGREGATES])
    on_spark = Action("spark_if", also=True, when="if it is one of Spark's")
    return Wrong(f"there is no function {key}() here", (f"did you mean `{near}`?", on_spark) if near else on_spark)


def _arity(least: int, most: int) -> str:
    if least == most:
        return str(least)
    return f"{least} or more" if most > 99 else f"{least} to {most}"
