"""Orders: made total in plans, and made of columns in circuits.

Where rows are counted in an order (LIMIT, row_number, lag, frames of ROWS) and two rows tie, SQL leaves open which
comes first. A view must not: it is computed again and has to be the same. So `determined` adds to such orders all
columns of the row, from left to right, ascending with nulls first; structs by their fields; arrays and maps are left
out. Circuits, and the query that a view is verified with, are both made of the plan that it gives. Where peers count
as one (rank, frames of RANGE) the order of the window stays as it is: a function that takes the value of one row of
such a frame (first_value, nth_value) gets the same total order as its ``within``. Aggregates that compare values or
list them get theirs from `headwater.incremental.planning.choices`. Which function needs what is in its record of the
catalogue (`ByOrder`).

Two things are left. Zeros compare as equal whatever their sign: of rows that differ in nothing else the negative one
is first, which a circuit does by itself and a query has as a key of its own (``zero sign``). And of rows that are the
same in all columns two window functions may each take another one for the first: so they are computed one after the
other, and the columns of those before belong to the order of those behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.layout import Order, kind_of
from headwater.incremental.planning.choices import chosen, plain_parts, value_order, with_choices
from headwater.incremental.planning.passes import pass_of
from headwater.incremental.planning.rows import Computed, Scope
from headwater.sql.functions.catalogue import by_order
from headwater.sql.functions.struct import field_of
from headwater.sql.nodes import Node, Ordering, SubqueryCall, WindowCall, call, rewrite
from headwater.sql.operators import is_zero_sign, zero_sign
from headwater.sql.plan import Aggregate, Attribute, Limit, Match, Named, Plan, Project, Sort, Window, With
from headwater.sql.plan.rebuilding import with_children, with_expressions
from headwater.sql.types import BOOLEAN, family, name_of

__all__ = ["determined", "order_columns", "order_length"]


def determined(plan: Plan, *, any_rows: bool = False) -> Plan:
    """The same plan with a total order wherever rows are counted; once is as good as twice.

    With ``any_rows`` a LIMIT without an order is by all columns.

    >>> from headwater.sql.query import parse_query
    >>> schema = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    >>> print(determined(parse_query("SELECT * FROM t ORDER BY b LIMIT 2", lambda *_: schema)).dump(), end="")
    limit 2
      sort b#2 asc nulls first, a#1 asc nulls first
        project a#1, b#2
          scan t [a#1, b#2]
    """
    below = with_children(plan, tuple(determined(c, any_rows=any_rows) for c in plan.children))
    if any(True for _ in below.subqueries()):
        below = with_expressions(below, lambda node: _inside(node, any_rows=any_rows))
    if isinstance(below, Limit):
        ordered = _limited(below)
        if any_rows and ordered is below and not isinstance(below.child, Sort):
            return replace(below, child=Sort(below.child, _total((), below.child.output)))
        return ordered
    if isinstance(below, Aggregate):
        return with_choices(below)
    if isinstance(below, Match):
        read = [a for a in below.child.output if a.key in below.read]
        return replace(below, order=_total(below.order, read, below.partition))
    return _passes(_framed(below)) if isinstance(below, Window) else below


def _inside(node: Node, *, any_rows: bool) -> Node:
    """An expression with its subqueries determined."""

    def change(part: Node) -> Node | None:
        if not isinstance(part, SubqueryCall):
            return None
        args = tuple(_inside(a, any_rows=any_rows) for a in part.args)
        return replace(part, plan=determined(part.plan, any_rows=any_rows), args=args)

    return rewrite(node, change)


def _limited(plan: Limit) -> Plan:
    child = plan.child
    if isinstance(child, Sort):
        return replace(plan, child=replace(child, order=_total(child.order, child.output)))
    if isinstance(child, Project | With):
        inner = _limited(replace(plan, child=child.child))
        if not isinstance(inner, Limit) or isinstance(inner.child, Sort):
            return replace(child, child=inner)
    return plan


def _framed(plan: Window) -> Window:
    """Functions over a frame with the order in which its rows are taken, where the answer depends on it."""

    def framed(item: Named) -> Named:
        one = item.node
        assert isinstance(one, WindowCall)
        if by_order(one.op) != "place":
            return replace(item, node=chosen(one, one.order))
        if one.within or _counts(one) or _same_for_peers(one):
            return item
        order = _total(one.order, plan.child.output, one.partition)
        if kind_of(one.dtype) == "nested":  # two rows that tie in all that is compared may still differ in it
            order += tuple(o for o in value_order(one.args[0]) if o not in order)
        return item if order == one.order else replace(item, node=replace(one, within=order))

    return replace(plan, items=tuple(map(framed, plan.items)))


def _same_for_peers(one: WindowCall) -> bool:
    """Is it a value of the order itself? Zeros are peers, and differ."""
    value = one.args[0]
    return family(value.dtype) not in ("float", "nested") and value in (*one.partition, *(o.node for o in one.order))


def _passes(plan: Window) -> Plan:
    """Window functions that count rows, each pass of them with an order that the results of those before belong to."""
    passes: dict[tuple[str, tuple[Node, ...], tuple[Ordering, ...]], list[Named]] = {}
    others = []
    for item in plan.items:
        one = item.node
        assert isinstance(one, WindowCall)
        if _counts(one):
            passes.setdefault((pass_of(one), one.partition, one.order), []).append(item)
        else:
            others.append(item)
    if not passes:
        return plan
    # The number of a row comes first: what is found by neighbours then goes with it.
    found: Plan = plan.child
    for _, items in sorted(passes.items(), key=lambda one: one[0][0] != "places"):
        found = Window(found, tuple(_counted(i, found.output) for i in items))
    if len(passes) == 1:
        assert isinstance(found, Window)
        named = {i.attribute: i for i in found.items}
        return replace(plan, items=tuple(named.get(i.attribute, i) for i in plan.items))
    if others:
        found = Window(found, tuple(others))
    return Project(found, tuple(Named(a, a.column) for a in plan.output))


def _counts(one: WindowCall) -> bool:
    by_rows = one.frame is not None and one.frame.unit == "rows" and not _is_whole(one)
    return by_order(one.op) == "rows" or by_rows


def _counted(item: Named, output: Sequence[Attribute]) -> Named:
    one = item.node
    assert isinstance(one, WindowCall)
    return replace(item, node=replace(one, order=_total(one.order, output, one.partition)))


def _is_whole(one: WindowCall) -> bool:
    return one.frame is not None and one.frame.start is None and one.frame.end is None


def _total(order: Sequence[Ordering], output: Sequence[Attribute], fixed: Sequence[Node] = ()) -> tuple[Ordering, ...]:
    """An order with all columns behind it, but those that are the same for all rows that are compared."""
    given = [o for o in order if not is_zero_sign(o.node)]
    known = {o.node for o in given} | set(fixed)
    parts = [part for a in {a.key: a for a in output}.values() for part in plain_parts(a.column)]
    rest = [Ordering(n) for n in parts if n not in known]
    signs = [Ordering(zero_sign(n), True) for n in parts if family(n.dtype) == "float"]
    return (*given, *rest, *signs)


def _by_fields(one: Ordering) -> list[Ordering]:
    """A key of an order as keys of plain types: a struct is compared field by field,
    and nulls are the least of its fields.
    """
    node = one.node
    if kind_of(node.dtype) != "nested":
        return [one]
    if not pa.types.is_struct(node.dtype):
        why = f"values of {name_of(node.dtype)} have no order in a circuit"
        raise UnsupportedError.operation("ORDER BY", why, "order by plain columns, or by fields of structs").about(
            "order"
        )
    found = [Ordering(call("is null", (node,), BOOLEAN), descending=one.nulls_first)]
    for f in node.dtype:
        found += _by_fields(Ordering(field_of(node, f.name), one.descending, not one.descending))
    return found


def order_columns(scope: Scope, order: Sequence[Ordering], stream: Stream | None = None) -> tuple[Stream, list[Order]]:
    """The stream with columns for the keys of an order that are no columns, and the order by names.

    A key that stands there twice counts where it is first. Signs of zeros are left out: a circuit has the order of
    the bits behind all others.
    """
    source = scope.stream if stream is None else stream
    found, computed = _named(scope, order)
    if computed:
        passed: list[tuple[str, Computed]] = [(c, c) for c in source.columns]
        detail = ", ".join(scope.text(o.node) for o in order)
        source = source.projected([*passed, *computed], label="order", detail=detail)
    return source, found


def order_length(scope: Scope, order: Sequence[Ordering]) -> int:
    """How many columns an order has in a circuit: those of `order_columns`, which any longer order begins with."""
    return len(_named(scope, order)[0])


def _named(scope: Scope, order: Sequence[Ordering]) -> tuple[list[Order], list[tuple[str, Computed]]]:
    found: dict[str, Order] = {}
    computed: list[tuple[str, Computed]] = []
    for one in (part for o in order if not is_zero_sign(o.node) for part in _by_fields(o)):
        how = scope.computed(one.node)
        name = how if isinstance(how, str) else f"\0order {len(computed)}"
        if not isinstance(how, str):
            computed.append((name, how))
        found.setdefault(name, Order(name, descending=one.descending, nulls_first=one.nulls_first))
    return list(found.values()), computed
