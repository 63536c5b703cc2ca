"""Inner joins in an order that looks rows up: relations are joined along equalities, and crossed only where there is
none.

``FROM a, b, c WHERE a.x = c.x AND b.y = c.y`` is first a cross join of a and b. All inner and cross joins that stand
together are taken apart into relations and conjuncts. A conjunct of one relation goes into it; then the first relation
is joined with the first one of the rest that an equality connects it with, in the order of the query, and so on. What
is not connected is crossed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headwater.sql.nodes import Call, Column, Node
from headwater.sql.plan import Filter, Join, Named, Plan, Project
from headwater.sql.rewriting.conditions import all_of, conjuncts, filtered
from headwater.sql.rewriting.factoring import factored, implied
from headwater.sql.rewriting.keys import reads

__all__ = ["joined"]

Sink = Callable[[Plan, Sequence[Node]], Plan]


def joined(plan: Join, parts: Sequence[Node], sink: Sink) -> Plan:
    """The join of all relations below under the conjuncts; ``sink`` moves conditions into a relation."""
    cluster = _Cluster(sink)
    cluster.take(plan)
    cluster.parts += factored(parts)
    whole = cluster.whole()
    wanted = plan.output
    if [a.key for a in whole.output] == [a.key for a in wanted]:
        return whole
    return Project(whole, tuple(Named(a, a.column) for a in wanted))


def _passes(plan: Project) -> bool:
    return all(isinstance(i.node, Column) and i.node.path == (i.attribute.key,) for i in plan.items)


@dataclass
class _Cluster:
    sink: Sink
    leaves: list[Plan] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)

    def take(self, plan: Plan) -> None:
        """The relations and conjuncts of joins that stand together."""
        if isinstance(plan, Join) and plan.kind in ("inner", "cross"):
            self.take(plan.left)
            self.take(plan.right)
            self.parts += factored(conjuncts(plan.condition))
        elif isinstance(plan, Filter) and _over_join(plan.child):
            self.take(plan.child)
            self.parts += factored(conjuncts(plan.condition))
        elif isinstance(plan, Project) and _passes(plan) and _over_join(plan.child):
            self.take(plan.child)
        else:
            self.leaves.append(plan)

    def whole(self) -> Plan:
        keys = [{a.key for a in leaf.output} for leaf in self.leaves]
        down: list[list[Node]] = [[] for _ in self.leaves]
        between, late = [], []
        for part in dict.fromkeys(self.parts):
            places = [i for i, k in enumerate(keys) if reads(part) & k]
            if part.fallible and not _is_equality(part):
                late.append(part)
            elif len(places) == 1 and not part.fallible:
                down[places[0]].append(part)
            elif len(places) < 2:
                late.append(part)
            else:
                between.append(part)
                for i in places:
                    found = implied(part, keys[i])
                    if found is not None:
                        down[i].append(found)
        plans = [self.sink(leaf, own) for leaf, own in zip(self.leaves, down, strict=True)]
        return filtered(_ordered(plans, keys, between), late)


def _over_join(plan: Plan) -> bool:
    if isinstance(plan, Filter) or (isinstance(plan, Project) and _passes(plan)):
        return _over_join(plan.child)
    return isinstance(plan, Join) and plan.kind in ("inner", "cross")


def _is_equality(node: Node) -> bool:
    return isinstance(node, Call) and node.op in ("=", "<=>")


def _connects(node: Node, left: set[str], right: set[str]) -> bool:
    if not _is_equality(node):
        return False
    assert isinstance(node, Call)
    a, b = (reads(arg) for arg in node.args)
    return bool(a and b) and ((a <= left and b <= right) or (a <= right and b <= left))


def _ordered(plans: list[Plan], keys: list[set[str]], parts: list[Node]) -> Plan:
    parts = list(parts)
    groups: list[tuple[Plan, set[str]]] = []
    left = list(zip(plans, keys, strict=True))
    while left:
        plan, known = left.pop(0)
        while (at := _next(left, known, parts)) is not None:
            other, theirs = left.pop(at)
            plan, known = _together(plan, known, other, theirs, parts)
        groups.append((plan, known))
    # Groups may be connected as wholes: an equality can read several relations on one side.
    plan, known = groups.pop(0)
    while groups:
        at = _next(groups, known, parts)
        other, theirs = groups.pop(0 if at is None else at)
        plan, known = _together(plan, known, other, theirs, parts)
    return plan


def _next(left: list[tuple[Plan, set[str]]], known: set[str], parts: list[Node]) -> int | None:
    for i, (_, keys) in enumerate(left):
        if any(_connects(p, known, keys) for p in parts):
            return i
    return None


def _together(plan: Plan, known: set[str], other: Plan, theirs: set[str], parts: list[Node]) -> tuple[Plan, set[str]]:
    """The join of two, on all conjuncts that can be told now; these are taken from ``parts``."""
    both = known | theirs
    on = [p for p in parts if reads(p) <= both and (not p.fallible or _connects(p, known, theirs))]
    on.sort(key=lambda p: not _connects(p, known, theirs))
    # One that may fail, and does not connect these two, waits for the end.
    waiting = [p for p in parts if p not in on]
    parts[:] = waiting
    late = [p for p in waiting if reads(p) <= both]
    for part in late:
        parts.remove(part)
    whole = Join("inner", plan, other, all_of(on)) if on else Join("cross", plan, other, None)
    return filtered(whole, late), both
