"""Correlated conditions taken out of a plan, up to where it is joined with the query around it.

``EXISTS (SELECT * FROM u WHERE u.k = t.k AND u.v > 3)`` is a join with ``u WHERE v > 3`` on ``u.k = t.k``. A condition
can rise through whatever does not look at several rows; through groups, DISTINCT and windows an equality can rise,
since its inner side becomes one more key. Where only the existence of rows counts (``setlike``) more can rise, because
rows may come twice.

Invariant: for each row of the query around, the rows of the original plan are those of the lifted plan for which all
conditions hold (as a set, if setlike), in their first columns. None is given where that cannot be reached; `domain`
then does it in general.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.sql.nodes import Column, Literal, Node, Ordering, WindowCall, call
from headwater.sql.plan import (
    Aggregate,
    Attribute,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Named,
    Plan,
    Project,
    Single,
    Sort,
    Window,
    With,
)
from headwater.sql.rewriting.conditions import Equality, Matched, all_of, conjuncts, filtered, matched
from headwater.sql.rewriting.keys import Keys, free, reads
from headwater.sql.types import BOOLEAN, INT

__all__ = ["Lifted", "lifted", "numbered"]


@dataclass(frozen=True, slots=True)
class Lifted:
    """A plan without correlation, and the conditions under which its rows belong to a row of the query around."""

    plan: Plan
    conditions: tuple[Node, ...] = ()


def lifted(plan: Plan, outer: set[str], keys: Keys, *, setlike: bool = False) -> Lifted | None:
    """The plan with the conditions that read ``outer`` taken out; None where they cannot be."""
    if not any(c.path[0] in outer for c in free(plan)):
        return Lifted(plan)
    return _Lifting(outer, keys).lift(plan, setlike=setlike)


class _Lifting:
    def __init__(self, outer: set[str], keys: Keys) -> None:
        self.outer, self.keys = outer, keys

    def lift(self, plan: Plan, *, setlike: bool) -> Lifted | None:
        if not any(c.path[0] in self.outer for c in free(plan)):
            return Lifted(plan)
        if isinstance(plan, Filter):
            return self._filter(plan, setlike)
        if isinstance(plan, Join):
            return self._join(plan, setlike)
        if any(reads(e) & self.outer for e in plan.expressions):
            return None
        if isinstance(plan, Sort):
            return self.lift(plan.child, setlike=setlike)
        if isinstance(plan, Distinct):
            return self._distinct(plan, setlike)
        if isinstance(plan, With):
            return self._with(plan, setlike)
        if isinstance(plan, Limit):
            return self._limit(plan)
        if isinstance(plan, Project | Generate):
            below = self.lift(plan.child, setlike=setlike)
            if below is None or isinstance(plan, Project):
                return below and self._project(plan, below)  # type: ignore[arg-type]
            return Lifted(replace(plan, child=below.plan), below.conditions)
        return self._looking_around(plan) if isinstance(plan, Aggregate | Window | Single) else None

    def _looking_around(self, plan: Aggregate | Window | Single) -> Lifted | None:
        """Operators over several rows: an equality's inner side is one more key."""
        found = self.lift(plan.child, setlike=False)
        keyed = None if found is None else self._keyed(found)
        if keyed is None:
            return None
        below, equal = keyed
        if isinstance(plan, Aggregate):
            return self._aggregate(plan, below, equal)
        if isinstance(plan, Single):
            return Lifted(Single(below.plan, _together(plan.keys, equal)), below.conditions)
        return Lifted(Window(below.plan, partitioned(plan.items, equal)), below.conditions)

    def _distinct(self, plan: Distinct, setlike: bool) -> Lifted | None:
        found = self.lift(plan.child, setlike=setlike)
        if setlike or found is None:
            return found
        keyed = self._keyed(found)
        if keyed is None:
            return None
        below, equal = keyed
        items = tuple(Named(a, a.column) for a in _together(plan.child.output, equal))
        return Lifted(Distinct(Project(below.plan, items)), below.conditions)

    def _with(self, plan: With, setlike: bool) -> Lifted | None:
        if any(self._is_correlated(p) for _, p in plan.definitions):
            return None
        body = self.lift(plan.child, setlike=setlike)
        return body and Lifted(With(plan.definitions, body.plan), body.conditions)

    def _filter(self, plan: Filter, setlike: bool) -> Lifted | None:
        below = self.lift(plan.child, setlike=setlike)
        if below is None:
            return None
        parts = conjuncts(plan.condition)
        mine = [p for p in parts if not reads(p) & self.outer]
        rising = [p for p in parts if reads(p) & self.outer]
        return Lifted(filtered(below.plan, mine), (*below.conditions, *rising))

    def _project(self, plan: Project, below: Lifted) -> Lifted:
        here = {i.attribute.key for i in plan.items}
        wanted = {key for c in below.conditions for key in reads(c)} - here
        more = tuple(Named(a, a.column) for a in below.plan.output if a.key in wanted)
        return Lifted(Project(below.plan, (*plan.items, *more)), below.conditions)

    def _join(self, plan: Join, setlike: bool) -> Lifted | None:
        parts = conjuncts(plan.condition)
        rising = [p for p in parts if reads(p) & self.outer]
        staying = [p for p in parts if not reads(p) & self.outer]
        kind = plan.kind
        if kind == "semi" and setlike:
            kind = "inner"  # a row may come twice
        if kind not in ("inner", "cross"):
            if rising or kind not in ("left", "semi", "anti") or self._is_correlated(plan.right):
                return None
            left = self.lift(plan.left, setlike=setlike)
            return left and Lifted(replace(plan, left=left.plan), left.conditions)
        left, right = self.lift(plan.left, setlike=setlike), self.lift(plan.right, setlike=setlike)
        if left is None or right is None:
            return None
        joined = Join("inner", left.plan, right.plan, all_of(staying)) if staying else None
        whole = joined or Join("cross", left.plan, right.plan, None)
        return Lifted(whole, (*left.conditions, *right.conditions, *rising))

    def _aggregate(self, plan: Aggregate, below: Lifted, equal: tuple[Attribute, ...]) -> Lifted | None:
        if not plan.keys or plan.sets is not None:
            return None  # a group of no rows would be lost
        more = tuple(Named(a, a.column) for a in equal if a.key not in {k.attribute.key for k in plan.keys})
        return Lifted(Aggregate(below.plan, (*plan.keys, *more), plan.aggregates), below.conditions)

    def _limit(self, plan: Limit) -> Lifted | None:
        sort = plan.child if isinstance(plan.child, Sort) else None
        if sort is not None and any(reads(o.node) & self.outer for o in sort.order):
            return None
        below = self.lift(plan.child if sort is None else sort.child, setlike=False)
        keyed = None if below is None else self._keyed(below)
        if keyed is None:
            return None
        below, equal = keyed
        return Lifted(numbered(plan, below.plan, equal, self.keys), below.conditions)

    def _is_correlated(self, plan: Plan) -> bool:
        return any(c.path[0] in self.outer for c in free(plan))

    def _keyed(self, below: Lifted) -> tuple[Lifted, tuple[Attribute, ...]] | None:
        """The same with the inner sides of all equalities as columns; None where there are other comparisons."""
        found = matched(below.conditions, below.plan)
        if found.others:
            return None
        plan, equalities = with_columns(below.plan, found, self.keys)
        conditions = (*(e.node for e in equalities), *found.outside)
        columns = {a.key: a for a in plan.output}
        equal = dict.fromkeys(columns[e.inner.path[0]] for e in equalities if isinstance(e.inner, Column))
        return Lifted(plan, conditions), tuple(equal)


def with_columns(plan: Plan, found: Matched, keys: Keys) -> tuple[Plan, tuple[Equality, ...]]:
    """The plan with a column for the inner side of each equality, and the equalities in terms of these."""
    more: dict[Node, Named] = {}
    out = []
    for e in found.equalities:
        if isinstance(e.inner, Column) and len(e.inner.path) == 1:
            out.append(e)
            continue
        named = more.setdefault(e.inner, keys.named("key", e.inner))
        out.append(replace(e, inner=named.attribute.column))
    if not more:
        return plan, tuple(out)
    passed = tuple(Named(a, a.column) for a in plan.output)
    return Project(plan, (*passed, *more.values())), tuple(out)


def _together(first: tuple[Attribute, ...], second: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    return (*first, *(a for a in second if a.key not in {b.key for b in first}))


def partitioned(items: tuple[Named, ...], by: tuple[Attribute, ...]) -> tuple[Named, ...]:
    """Window calls within the values of some more columns."""
    out = []
    for item in items:
        assert isinstance(item.node, WindowCall)
        partition = tuple(dict.fromkeys((*(a.column for a in by), *item.node.partition)))
        out.append(replace(item, node=replace(item.node, partition=partition)))
    return tuple(out)


def numbered(plan: Limit, child: Plan, by: tuple[Attribute, ...], keys: Keys) -> Plan:
    """LIMIT and OFFSET within each value of some columns: the rows are numbered, and some numbers kept."""
    order: tuple[Ordering, ...] = plan.child.order if isinstance(plan.child, Sort) else ()
    number = WindowCall("row_number", (), INT, tuple(a.column for a in by), order, None)
    named = Named(keys.attribute("row_number", INT, nullable=False), number)
    parts = []
    if plan.offset:
        parts.append(call(">", (named.attribute.column, Literal(plan.offset, INT)), BOOLEAN))
    if plan.count is not None:
        last = Literal(plan.offset + plan.count, INT)
        parts.append(call("<=", (named.attribute.column, last), BOOLEAN))
    kept = Filter(Window(child, (named,)), all_of(parts)) if parts else child
    return Project(kept, tuple(Named(a, a.column) for a in child.output)) if parts else child
