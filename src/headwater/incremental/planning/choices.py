"""Aggregates with more than one right answer, written such that there is one.

``first(x)`` of rows without an order may be any of their values, ``collect_list(x)`` may be in any order, and of two
rows with the same ``y`` either may give the ``x`` of ``max_by(x, y)``. A circuit has to give the same for the same
rows, and so has the query that a view is verified with. Here is what both give: the least value for first and
any_value of a group, and the greatest for last; the least of the most frequent values; of rows that tie the least
value for min_by, and the greatest for max_by; lists sorted by the order they have, then by the value. Which functions
these are, the catalogue says (`headwater.sql.functions.function.ByOrder`).

The choice is the ``within`` of a call. Null is the least value, and -0.0 is before 0.0. A struct is compared by its
fields, an array or a map by a hash of its JSON: any order will do, as long as it is the same one everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from headwater.incremental.layout import kind_of
from headwater.sql.calls import apply_function
from headwater.sql.functions.catalogue import by_order
from headwater.sql.functions.struct import field_of
from headwater.sql.nodes import AggregateCall, Column, Literal, Node, Ordering, Refused, WindowCall, call, walk
from headwater.sql.operators import is_zero_sign, zero_sign
from headwater.sql.plan import Aggregate, Named
from headwater.sql.types import BOOLEAN, family

__all__ = ["chosen", "plain_parts", "value_order", "with_choices"]

_EXTREMES = {"first": "min", "last": "max"}
_GREATEST = {"max", "max_by"}
_Many = TypeVar("_Many", AggregateCall, WindowCall)


def with_choices(plan: Aggregate) -> Aggregate:
    """The same aggregation with one answer for each group.

    >>> from headwater.sql.query import parse_query
    >>> plan = parse_query("SELECT first(a), collect_list(a) FROM t", lambda *_: pa.schema([("a", pa.int32())])).child
    >>> assert isinstance(plan, Aggregate)
    >>> print(with_choices(plan).dump(), end="")
    aggregate by [] give [min(a#1) as first#2, collect_list(a#1 order by a#1 asc nulls first) as collect_list#3]
      scan t [a#1]
    """
    return replace(plan, aggregates=tuple(map(_grouped, plan.aggregates)))


def _grouped(item: Named) -> Named:
    node = item.node
    if not isinstance(node, AggregateCall):
        return item
    op = node.op.removesuffix(" ignore nulls")
    if by_order(op) == "place" and not node.within:
        if kind_of(node.dtype) == "nested":
            return replace(item, node=replace(node, within=tuple(value_order(node.args[0]))))
        node = replace(node, op=_EXTREMES[op])
    return replace(item, node=chosen(node))


def chosen(one: _Many, order: Sequence[Ordering] = ()) -> _Many:
    """A call that compares or lists values, with the order in which rows are taken; ``order`` is that of the window."""
    if one.within or by_order(one.op) not in ("extreme", "list"):
        return one
    once: dict[Node, Ordering] = {}
    for key in _choice(one.op, one.args, order):  # a key that stands there twice counts where it is first
        once.setdefault(key.node, key)
    return replace(one, within=tuple(once.values()))


def _choice(op: str, args: Sequence[Node], order: Sequence[Ordering]) -> list[Ordering]:
    value, greatest = args[0], op in _GREATEST
    if not any(isinstance(part, Column) for arg in args for part in walk(arg)):  # the same for all rows
        return []
    if by_order(op) == "list":
        if op == "listagg" and len(args) > 2:
            if args[2] == value:  # equal texts are the same
                return []
            down, first = (isinstance(a, Literal) and bool(a.value) for a in args[3:5])
            order = (Ordering(args[2], down, first),)
        return [*(() if op == "collect_set" else order), *value_order(value)]
    if op in ("min", "max"):
        # Equal values differ only in their zeros.
        signs = [o for o in value_order(value, descending=greatest) if is_zero_sign(o.node)]
        return [_towards(value, descending=greatest), *signs] if signs else []
    if value in args[1:] and family(value.dtype) not in ("float", "nested"):
        return []
    by = [_towards(a, descending=greatest) for a in args[1:]]
    return [*by, *value_order(value, descending=greatest)]


def _towards(node: Node, *, descending: bool) -> Ordering:
    return Ordering(node, descending, nulls_first=not descending)


def value_order(node: Node, *, descending: bool = False) -> list[Ordering]:
    """An order in which only equal values are equal."""
    parts = plain_parts(node, hashed=True)
    found = [_towards(n, descending=descending) for n in parts]
    return found + [_towards(zero_sign(n), descending=not descending) for n in parts if family(n.dtype) == "float"]


def plain_parts(node: Node, *, hashed: bool = False) -> list[Node]:
    """What a value is compared by: a struct by its fields. Arrays and maps are compared only if they are ``hashed``."""
    if pa.types.is_struct(node.dtype):
        fields = [part for f in node.dtype for part in plain_parts(field_of(node, f.name), hashed=hashed)]
        return [call("is null", (node,), BOOLEAN), *fields] if hashed else fields
    if kind_of(node.dtype) != "nested":
        return [node]
    if not hashed:
        return []
    try:
        return [apply_function("xxhash64", [apply_function("to_json", [node])])]
    except Refused:  # such as intervals, which JSON does not have
        return []
