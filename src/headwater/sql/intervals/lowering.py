"""The last step of reading: a plan with whole numbers in the place of intervals.

No engine knows Spark's intervals, and none has to: an interval of days is a bigint of microseconds, one of months an
int, and they compare, group and add up as such. Only sums of months, which have to fit an int, and averages need more:
those are a sum and a count, divided above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa

from headwater.base.errors import SchemaError
from headwater.sql.interval_types import IntervalType, has_interval, storage_of
from headwater.sql.intervals.values import AMOUNT, INTERVAL
from headwater.sql.nodes import AggregateCall, Call, Literal, Node, Refused, WindowCall, call
from headwater.sql.plan import Aggregate, Attribute, Named, Plan, Project, Scan, Window
from headwater.sql.types import INT, LONG, name_of

__all__ = ["lowered_node", "lowered_plan"]

_WAYS_OUT = (
    "CAST(… AS BIGINT) counts it in its last unit, CAST(… AS STRING) prints it, and extract(DAY FROM …) takes a part"
)


def lowered_plan(plan: Plan) -> Plan:
    """The plan without intervals; a column of its answer that is one is refused."""
    for attribute in plan.output:
        if has_interval(attribute.dtype):
            raise SchemaError.interval_column(attribute.name, name_of(attribute.dtype), _WAYS_OUT)
    if not _meets_interval(plan):  # which most do not, and looking is cheaper than rebuilding
        return plan
    found = _in_whole_numbers(plan, {})
    assert isinstance(found, Plan)
    return found


def lowered_node(node: Node) -> Node:
    """The expression without intervals; it cannot be one itself."""
    if has_interval(node.dtype):
        raise Refused(f"a value of type {name_of(node.dtype)}", _WAYS_OUT)
    found: Node = _in_whole_numbers(node, {}) if _meets_interval(node) else node
    return found


# The fields of each class that was met; None for types that may have an interval in them.
_FIELDS: dict[type, tuple[str, ...] | None] = {Scan: (), IntervalType: None}
_FIELDS |= dict.fromkeys((pa.ListType, pa.MapType, pa.StructType), None)


def _meets_interval(root: object) -> bool:
    """Is there an interval anywhere in a plan or a node?"""
    pending, seen = [root], set()
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending.extend(value)
            continue
        kind = type(value)
        if kind not in _FIELDS:
            _FIELDS[kind] = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()
        names = _FIELDS[kind]
        if names is None:
            if has_interval(value):
                return True
        elif names and id(value) not in seen:
            seen.add(id(value))
            pending.extend([getattr(value, name) for name in names])
    return False


def _in_whole_numbers(value: Any, known: dict[int, tuple[Any, Any]]) -> Any:
    """A plan, a node, or anything in them; the same object where nothing changes."""
    if isinstance(value, pa.DataType):
        return storage_of(value)
    if not isinstance(value, tuple) and not is_dataclass(value):
        return value
    if id(value) in known:
        return known[id(value)][1]
    found = _changed(value, known)
    known[id(value)] = (value, found)  # which keeps the value alive, and its id with it
    return found


def _changed(value: Any, known: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, tuple):
        parts = tuple(_in_whole_numbers(v, known) for v in value)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if isinstance(value, Call) and value.op in (AMOUNT, INTERVAL):
        return _in_whole_numbers(value.args[0], known)
    if isinstance(value, Aggregate) and any(map(_is_divided, value.aggregates)):
        grouped = replace(value, aggregates=tuple(p for n in value.aggregates for p in _parts(n, known)))
        return _above(grouped, (*value.keys, *value.aggregates), known)
    if isinstance(value, Window) and any(map(_is_divided, value.items)):
        below = replace(value, items=tuple(p for n in value.items for p in _parts(n, known)))
        passed = tuple(Named(a, a.column) for a in value.child.output)
        return _above(below, (*passed, *value.items), known)
    made = {f.name: _in_whole_numbers(getattr(value, f.name), known) for f in fields(value)}
    if all(made[name] is getattr(value, name) for name in made):
        return value
    return replace(value, **made)


def _is_divided(named: Named) -> bool:
    """Is it an average of intervals, or a sum of months?"""
    node = named.node
    if not isinstance(node, AggregateCall | WindowCall) or node.op not in ("avg", "sum") or not node.args:
        return False
    dtype = node.args[0].dtype
    return isinstance(dtype, IntervalType) and (node.op == "avg" or not dtype.of_days)


def _parts(named: Named, known: dict[int, tuple[Any, Any]]) -> Sequence[Named]:
    if not _is_divided(named):
        return (named,)
    node = named.node
    assert isinstance(node, AggregateCall | WindowCall)
    node = replace(node, args=_in_whole_numbers(node.args, known))
    total, count = replace(node, op="sum", dtype=LONG), replace(node, op="count", dtype=LONG)
    return [
        Named(_attribute(named, "sum"), total),
        *([Named(_attribute(named, "count"), count)] if node.op == "avg" else []),
    ]


def _attribute(named: Named, what: str) -> Attribute:
    return Attribute(f"{what} of {named.attribute.name}", f"{what} of {named.attribute.key}", LONG, what == "sum")


def _above(below: Plan, items: tuple[Named, ...], known: dict[int, tuple[Any, Any]]) -> Plan:
    found = _in_whole_numbers(below, known)
    above = []
    for named in items:
        attribute = _in_whole_numbers(named.attribute, known)
        node: Node = attribute.column
        if _is_divided(named):
            node = _answer(named)
        above.append(Named(attribute, node))
    return Project(found, tuple(above))


def _answer(named: Named) -> Node:
    total: Node = _attribute(named, "sum").column
    assert isinstance(named.node, AggregateCall | WindowCall)
    dtype = named.node.args[0].dtype
    assert isinstance(dtype, IntervalType)
    if not dtype.of_days:
        total = call("cast", (total,), INT, fallible=True)  # which is how far Spark counts
    if named.node.op == "sum":
        return total
    if not dtype.of_days:
        total = call("cast", (total,), LONG)
    counted = _attribute(named, "count").column
    # An average of nothing is null, and nothing is divided by zero.
    some = call("case", (call("=", (counted, Literal(0, LONG)), pa.bool_()), Literal(None, LONG), counted), LONG)
    found = call("half up /", (total, some), LONG, fallible=True)
    return found if dtype.of_days else call("cast", (found,), INT, fallible=True)
