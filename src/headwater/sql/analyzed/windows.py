"""Windows: functions of a row and its neighbours, and the plan nodes that hold them.

Spark writes every frame out. A frame that is the function's own habit is left out again, as the reader of SQL does.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.sql.analyzed.aggregates import aggregate_call
from headwater.sql.analyzed.constants import interval_of
from headwater.sql.analyzed.datatypes import INTERVAL
from headwater.sql.analyzed.reading import Expressions, Reading, Rows, Scope, expression, plan, refused
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_aggregate
from headwater.sql.interval_types import is_interval
from headwater.sql.intervals.constants import Interval
from headwater.sql.nodes import AggregateCall, Column, Frame, Literal, Node, Offset, Ordering, Refused, WindowCall, walk
from headwater.sql.plan import Named, Window
from headwater.sql.reader.frames import offset
from headwater.sql.types import is_comparable, is_key, name_of

__all__ = ["ordering"]

_RANKS = {"RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank"}
_RANKS |= {"CumeDist": "cume_dist"}
_UNFRAMED = {"listagg", "percentile", "percentile_cont", "percentile_disc"}


def ordering(reader: Expressions, tree: Tree) -> Ordering:
    """One key of an ORDER BY."""
    key = reader.read(tree.children[0])
    if not is_comparable(key.dtype):
        raise Refused(f"ORDER BY {name_of(key.dtype)}", "order by plain columns")
    return Ordering(key, tree.fields["direction"] == "Descending", tree.fields["nullOrdering"] == "NullsFirst")


@expression("WindowExpression")
def _window(reader: Expressions, tree: Tree) -> Node:
    function, spec = tree.children
    skip = False
    if function.kind == "AggregateExpression":
        found = aggregate_call(reader, function)
    else:
        found, skip = _ranked(reader, function), bool(function.fields.get("ignoreNulls"))
    if found.op.endswith(" ignore nulls"):
        found, skip = (
            AggregateCall(found.op.removesuffix(" ignore nulls"), found.args, found.dtype, where=found.where),
            True,
        )
    parts = list(spec.children)
    count = len(spec.fields["partitionSpec"])
    partition = tuple(reader.read(p) for p in parts[:count])
    order = tuple(ordering(reader, o) for o in parts[count:-1])
    for key in partition:
        if not is_key(key.dtype):
            raise Refused(f"PARTITION BY {name_of(key.dtype)}", "partition by plain columns")
    framed = function.kind in ("AggregateExpression", "NthValue")
    frame = _frame(reader, parts[-1], order) if framed else None
    if found.op in _UNFRAMED and (order or frame is not None):
        raise Refused(f"{found.op}() over an order or a frame", "leave them out")
    return WindowCall(found.op, found.args, found.dtype, partition, order, frame, found.distinct, found.where, skip)


def _ranked(reader: Expressions, tree: Tree) -> AggregateCall:
    if tree.kind in _RANKS:
        return apply_aggregate(_RANKS[tree.kind], [])
    given = reader.children(tree)
    if tree.kind == "NTile":
        return apply_aggregate("ntile", given)
    if tree.kind == "NthValue":
        return apply_aggregate("nth_value", given)
    if tree.kind in ("Lag", "Lead"):
        return apply_aggregate(tree.kind.lower(), given)
    raise refused(tree.kind)


def _frame(reader: Expressions, tree: Tree, order: tuple[Ordering, ...]) -> Frame | None:
    unit = {"RowFrame": "rows", "RangeFrame": "range"}[str(tree.fields["frameType"])]
    lower, upper = (tree.children * 2)[:2]  # two equal bounds are one child
    frame = Frame(unit, _bound(reader, lower, unit, order), _bound(reader, upper, unit, order))
    if not order and frame == Frame("rows", None, None):
        return None
    return None if order and frame == Frame("range", None, 0) else frame


def _bound(reader: Expressions, tree: Tree, unit: str, order: tuple[Ordering, ...]) -> int | Offset | None:
    if tree.kind in ("UnboundedPreceding", "UnboundedFollowing"):
        return None
    if tree.kind == "CurrentRow":
        return 0
    before, inner = tree.kind == "UnaryMinus", tree
    if before:
        inner = tree.children[0]
    elif tree.kind == "Cast" and tree.children[0].kind == "UnaryMinus":  # the cast of -1, of which -1 is the meaning
        before, inner = True, replace(tree, children=tree.children[0].children)
    found: Node = reader.read(inner)
    distance: Node | Interval = found
    if found.dtype == INTERVAL or is_interval(found.dtype):
        distance = interval_of(reader, inner)
        if distance.months < 0 or distance.days < 0 or distance.micros < 0:
            before, distance = not before, -distance
    elif isinstance(found, Literal) and isinstance(found.value, int | float) and found.value < 0:
        before, distance = not before, Literal(-found.value, found.dtype)
    return offset(distance, order, unit, before=before)


@plan("Window")
def _windows(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    below = reading.rows(tree.children[0], around)
    reader = reading.expressions(below, around)
    items: list[Named] = []
    ids: list[int] = []
    for part in tree.trees("windowExpressions"):
        node = reader.read(part.children[0])
        assert isinstance(node, WindowCall)
        items.append(reading.named(node.op, node))
        ids.append(int(part.fields["exprId"]))
    made = below.plan
    if isinstance(made, Window) and not _reads(items, made):
        # Spark has a node for each order of rows; windows that do not read each other are one node here.
        return Rows(Window(made.child, (*made.items, *items)), (*below.ids, *ids))
    return Rows(Window(made, tuple(items)), (*below.ids, *ids))


def _reads(items: list[Named], below: Window) -> bool:
    made = {i.attribute.key for i in below.items}
    return any(isinstance(n, Column) and n.path[0] in made for i in items for n in walk(i.node))
