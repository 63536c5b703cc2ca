"""May an expression be null? Told from its parts, and True where that is not known."""

from __future__ import annotations

from headwater.sql.nodes import AggregateCall, Call, Column, Literal, Node, SubqueryCall, WindowCall

__all__ = ["nullable"]

_NEVER = {"is null", "is not null", "<=>", "isnan"}
_STRICT = {
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "minus",
    "abs",
    "not",
    "and",
    "or",
    "||",
    "length",
    "in",
    "amount",
    "interval",
}
_COUNTING = {
    "count",
    "count_if",
    "row_number",
    "rank",
    "dense_rank",
    "ntile",
    "percent_rank",
    "cume_dist",
    "collect_list",
}


def nullable(node: Node) -> bool:
    """Whether the expression may be null.

    >>> import pyarrow as pa
    >>> nullable(Literal(1, pa.int32())), nullable(Column(None, ("a",), pa.int32()))
    (False, True)
    """
    if isinstance(node, Literal):
        return node.value is None
    if isinstance(node, Column):
        return node.nullable or len(node.path) > 1
    if isinstance(node, SubqueryCall):
        return node.kind != "exists"
    if isinstance(node, AggregateCall | WindowCall):
        return node.op not in _COUNTING
    assert isinstance(node, Call)
    if node.op in _NEVER:
        return False
    if node.op == "coalesce":
        return all(map(nullable, node.args))
    if node.op == "case":
        return any(map(nullable, (*node.args[1::2], node.args[-1])))
    return any(map(nullable, node.args)) if node.op in _STRICT or node.op == "cast" else True
