"""Aggregates with more than one right answer, said such that there is one.

``first(x)`` of rows without an order may be any of their values, and ``collect_list(x)`` may be in any order. A circuit has to give the same for the
same rows, and so has the query that a view is verified with. Here is what both give: the least value for first and any_value, the greatest for
last, lists and sets sorted with nulls left out, listagg in the order of its texts. What has an order keeps it.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.incremental.layout import kind_of
from headwater.sql.functions.catalogue import apply_function
from headwater.sql.nodes import AggregateCall, Literal
from headwater.sql.plan import Aggregate, Named, Plan, Project
from headwater.sql.types import BOOLEAN

__all__ = ["with_choices"]

_EXTREMES = {"first": "min", "any_value": "min", "last": "max"}
_LISTS = ("collect_list", "collect_set")
_UNSORTED = " unsorted"


def with_choices(plan: Aggregate) -> Plan:
    """The same aggregation with one answer for each group.

    >>> import pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> plan = parse_query("SELECT first(a), collect_list(a) FROM t", lambda *_: pa.schema([("a", pa.int32())])).child
    >>> assert isinstance(plan, Aggregate)
    >>> print(with_choices(plan).dump(), end="")
    project first#2, sort_array(collect_list#3 unsorted, true) as collect_list#3
      aggregate by [] give [min(a#1) as first#2, collect_list(a#1) as collect_list#3 unsorted]
        scan t [a#1]
    """
    sorted_: dict[str, Named] = {}
    given: list[Named] = []
    for item in plan.aggregates:
        call, key = item.node, item.attribute.key
        if not isinstance(call, AggregateCall):
            given.append(item)
            continue
        if call.op in _LISTS and kind_of(call.dtype.value_type) != "nested" and not key.endswith(_UNSORTED):
            below = replace(item.attribute, key=key + _UNSORTED)
            node = apply_function("sort_array", [below.column, Literal(True, BOOLEAN)])
            sorted_[key] = replace(item, node=node)
            given.append(replace(item, attribute=below))
        else:
            given.append(replace(item, node=_told(call)))
    found = replace(plan, aggregates=tuple(given))
    if not sorted_:
        return found
    items = [sorted_.get(a.key) or Named(a, a.column) for a in plan.output]
    return Project(found, tuple(items))


def _told(call: AggregateCall) -> AggregateCall:
    """A call that chooses a value or an order, told which."""
    op = call.op.removesuffix(" ignore nulls")
    if op in _EXTREMES and kind_of(call.dtype) != "nested":
        return replace(call, op=_EXTREMES[op])
    if op == "listagg" and len(call.args) == 2:
        order = (call.args[0], Literal(False, BOOLEAN), Literal(True, BOOLEAN))
        return replace(call, args=(*call.args, *order))
    return call
