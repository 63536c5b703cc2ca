"""Window functions that are no aggregates: ranks, and a look at the rows before and after."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import MANY, Apply, Builder, ByOrder, Function
from headwater.sql.nodes import AggregateCall, Literal, Node, Refused, WindowCall
from headwater.sql.types import DOUBLE, INT, NULL, name_of, wider

__all__ = ["FUNCTIONS"]

_Many = AggregateCall | WindowCall


def _rank(op: str, dtype: pa.DataType) -> Builder:
    # rank(x) is taken for rank(): the order of the window decides.
    return lambda _: AggregateCall(op, (), dtype)


def _ntile(args: Sequence[Node]) -> Node:
    (count,) = args
    if not isinstance(count, Literal) or not isinstance(count.value, int) or count.value <= 0 or count.dtype != INT:
        raise Refused("ntile() of something else than a positive constant", "write ntile(4)")
    return AggregateCall("ntile", (count,), INT)


def _neighbour(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        value = args[0]
        offset = args[1] if len(args) > 1 else Literal(1, INT)
        default = args[2] if len(args) > 2 else Literal(None, NULL)
        if not isinstance(offset, Literal) or not isinstance(offset.value, int) or offset.dtype != INT:
            raise Refused(f"{op}() with an offset that is not a constant", f"write {op}(x, 1)")
        meet = wider(value.dtype, default.dtype, promote_text=False)
        if meet is None or value.dtype not in (meet, NULL):
            what = f"{op}() of {name_of(value.dtype)} with a default of {name_of(default.dtype)}"
            raise Refused(what, "cast the default to the value's type")
        return AggregateCall(op, (cast(value, meet), offset, cast(default, meet)), meet)

    return build


def _nth(args: Sequence[Node]) -> Node:
    value, offset = args[:2]
    if not isinstance(offset, Literal) or not isinstance(offset.value, int) or offset.value <= 0:
        raise Refused("nth_value() with an offset that is not a positive constant", "write nth_value(x, 2)")
    return AggregateCall("nth_value", (value, offset), value.dtype)


def _typed(node: _Many, args: list[str], apply: Apply) -> str:
    return f"CAST({apply(node.op, *args)} AS {'DOUBLE' if node.dtype == DOUBLE else 'INTEGER'})"


def _plain(node: _Many, args: list[str], apply: Apply) -> str:
    return apply(node.op, *args)


_RANKS: tuple[tuple[str, pa.DataType, ByOrder], ...] = (
    ("row_number", INT, "rows"),
    ("rank", INT, "peers"),
    ("dense_rank", INT, "peers"),
    ("percent_rank", DOUBLE, "peers"),
    ("cume_dist", DOUBLE, "peers"),
)
FUNCTIONS = (
    *(
        Function(
            name,
            "window",
            _rank(name, dtype),
            0,
            0 if by == "rows" or name == "cume_dist" else MANY,
            kind="window",
            aggregate_form=_typed,
            by_order=by,
        )
        for name, dtype, by in _RANKS
    ),
    Function("ntile", "window", _ntile, 1, 1, kind="window", aggregate_form=_typed, by_order="rows"),
    Function("lag", "window", _neighbour("lag"), 1, 3, kind="window", aggregate_form=_plain, by_order="rows"),
    Function("lead", "window", _neighbour("lead"), 1, 3, kind="window", aggregate_form=_plain, by_order="rows"),
    Function("nth_value", "window", _nth, 2, 2, kind="window", aggregate_form=_plain, by_order="place"),
)
