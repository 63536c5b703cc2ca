"""A correlated plan for all rows of the query around it at once: the general method, for what `lifting` cannot do.

The *domain* is the distinct values of the columns that the plan reads from outside. The plan is computed over the
domain, each of its operators within one value of it: a filter compares with the value, groups and windows are per
value, set operations compare the value too. The outcome has the value in columns of its own, and a join with the query
around it on these puts it in its place.

Invariant: for each value of the domain, the rows that ``over`` gives for it are those of the plan for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headwater.sql.nodes import Column, Node, Refused, call
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
    Reference,
    SetOperation,
    Single,
    Sort,
    Values,
    Window,
    With,
)
from headwater.sql.plan.rebuilding import substituted, with_expressions
from headwater.sql.rewriting.conditions import all_of, conjuncts, null_safe
from headwater.sql.rewriting.emptiness import of_no_rows
from headwater.sql.rewriting.keys import Keys, columns_of, free
from headwater.sql.rewriting.lifting import numbered, partitioned
from headwater.sql.rewriting.sharing import inlined

__all__ = ["Domain", "Over"]


@dataclass(frozen=True, slots=True)
class Over:
    """A plan for every value of a domain; ``by`` are the columns with the value, in the domain's order."""

    plan: Plan
    by: tuple[Attribute, ...]


class Domain:
    """The values of ``columns`` in ``rows``; ``rows`` is read once for each part of the plan that has to know them."""

    def __init__(self, rows: Reference, columns: tuple[Column, ...], keys: Keys) -> None:
        self.rows, self.columns, self.keys = rows, columns, keys
        self.outer = {c.path[0] for c in columns}

    def values(self) -> Over:
        """The domain itself, read once more."""
        fresh = tuple(map(self.keys.renewed, self.rows.columns))
        renamed = {old.key: new.key for old, new in zip(self.rows.columns, fresh, strict=True)}
        items = []
        for column in self.columns:
            node = replace(column, path=(renamed[column.path[0]], *column.path[1:]))
            attribute = self.keys.attribute(column.path[-1].split("#")[0], column.dtype, nullable=column.nullable)
            items.append(Named(attribute, node))
        rows = Reference(self.rows.name, self.rows.keys, fresh)
        plan = Distinct(Project(rows, tuple(items)))
        return Over(plan, tuple(i.attribute for i in items))

    def over(self, plan: Plan) -> Over:
        """The plan for each value."""
        if not self._is_correlated(plan):
            known = self.values()
            if plan.output:
                return Over(Join("cross", known.plan, plan, None), known.by)
            if isinstance(plan, Values) and len(plan.rows) == 1:
                return known
            return self._refused(plan)
        return _RULES[type(plan)](self, plan) if type(plan) in _RULES else self._refused(plan)

    def equal(self, left: Over, right: Over) -> list[Node]:
        """The conjuncts that put two plans of one value together."""
        return [null_safe(a.column, b.column) for a, b in zip(left.by, right.by, strict=True)]

    def _refused(self, plan: Plan) -> Over:
        what = f"a subquery that reads columns of the query around it inside of {plan.line().split(' ')[0]}"
        raise Refused(what, "join with it instead")

    def _is_correlated(self, plan: Plan) -> bool:
        return any(c.path[0] in self.outer for c in free(plan))

    def _in(self, node: Node, by: tuple[Attribute, ...]) -> Node:
        return substituted(node, {c.path: a.column for c, a in zip(self.columns, by, strict=True)})

    def _own(self, node: Node) -> bool:
        return any(c.path[0] in self.outer for c in columns_of(node))

    # --- one rule a node

    def _plain(self, plan: Plan) -> Over:
        """Filters and generators: the rows below, with their values beside them."""
        assert isinstance(plan, Filter | Generate)
        below = self.over(plan.child)
        return Over(with_expressions(replace(plan, child=below.plan), lambda n: self._in(n, below.by)), below.by)

    def _project(self, plan: Plan) -> Over:
        assert isinstance(plan, Project)
        below = self.over(plan.child)
        items = tuple(replace(i, node=self._in(i.node, below.by)) for i in plan.items)
        return Over(Project(below.plan, (*items, *_passed(below.by))), below.by)

    def _join(self, plan: Plan) -> Over:
        assert isinstance(plan, Join)
        if plan.kind == "right":
            mirrored = self._join(Join("left", plan.right, plan.left, plan.condition))
            items = (*_passed(plan.output), *_passed(mirrored.by))
            return Over(Project(mirrored.plan, items), mirrored.by)
        parts = conjuncts(plan.condition)
        left_knows, right_knows = self._is_correlated(plan.left), self._is_correlated(plan.right)
        if plan.kind in ("inner", "cross") and right_knows and not left_knows:
            right = self.over(plan.right)
            kind, condition = _kind(plan, [self._in(p, right.by) for p in parts])
            return Over(Join(kind, plan.left, right.plan, condition), right.by)
        left = self.over(plan.left)
        parts = [self._in(p, left.by) for p in parts]
        if plan.kind == "full":
            return self._full(plan, left, self.over(plan.right), parts)
        if not right_knows:
            kind, condition = _kind(plan, parts)
            return Over(Join(kind, left.plan, plan.right, condition), left.by)
        right = self.over(plan.right)
        kind, condition = _kind(plan, [*self.equal(left, right), *parts])
        return Over(Join(kind, left.plan, right.plan, condition), left.by)

    def _full(self, plan: Join, left: Over, right: Over, parts: list[Node]) -> Over:
        whole = Join("full", left.plan, right.plan, all_of([*self.equal(left, right), *parts]))
        by = [
            Named(self.keys.renewed(a), call("coalesce", (a.column, b.column), a.dtype))
            for a, b in zip(left.by, right.by, strict=True)
        ]
        return Over(Project(whole, (*_passed(plan.output), *by)), tuple(n.attribute for n in by))

    def _aggregate(self, plan: Plan) -> Over:
        assert isinstance(plan, Aggregate)
        below = self.over(plan.child)
        inside = with_expressions(replace(plan, child=below.plan), lambda n: self._in(n, below.by))
        assert isinstance(inside, Aggregate)
        if plan.sets is not None and () in plan.sets:
            raise Refused("a subquery with ROLLUP, CUBE or () that reads the query around it", "group without them")
        sets = plan.sets
        if sets is not None:
            more = tuple(range(len(plan.keys), len(plan.keys) + len(below.by)))
            sets = tuple((*s, *more) for s in sets)
        if plan.keys:
            keyed = (*inside.keys, *_passed(below.by))
            return Over(Aggregate(below.plan, keyed, inside.aggregates, sets), below.by)
        # Without keys there is a row for a value without rows, too.
        inner = tuple(replace(i, attribute=self.keys.renewed(i.attribute)) for i in inside.aggregates)
        grouped = Over(Aggregate(below.plan, _passed(below.by), inner), below.by)
        known = self.values()
        whole = Join("left", known.plan, grouped.plan, all_of(self.equal(known, grouped)))
        items = (Named(a.attribute, of_no_rows(b)) for a, b in zip(plan.aggregates, inner, strict=True))
        return Over(Project(whole, (*items, *_passed(known.by))), known.by)

    def _distinct(self, plan: Plan) -> Over:
        assert isinstance(plan, Distinct)
        below = self.over(plan.child)
        items = (*_passed(plan.output), *_passed(below.by))
        return Over(Distinct(Project(below.plan, items)), below.by)

    def _sort(self, plan: Plan) -> Over:
        assert isinstance(plan, Sort)
        return self.over(plan.child)

    def _limit(self, plan: Plan) -> Over:
        assert isinstance(plan, Limit)
        sort = plan.child if isinstance(plan.child, Sort) else None
        below = self.over(plan.child if sort is None else sort.child)
        inside = plan
        if sort is not None:
            inside = replace(plan, child=with_expressions(sort, lambda n: self._in(n, below.by)))
        return Over(numbered(inside, below.plan, below.by, self.keys), below.by)

    def _set_operation(self, plan: Plan) -> Over:
        assert isinstance(plan, SetOperation)
        left, right = self.over(plan.left), self.over(plan.right)
        sides = [
            Project(o.plan, (*_passed(p.output), *_passed(o.by))) for o, p in ((left, plan.left), (right, plan.right))
        ]
        by = tuple(map(self.keys.renewed, left.by))
        whole = SetOperation(plan.kind, plan.every, sides[0], sides[1], (*plan.columns, *by))
        return Over(whole, by)

    def _window(self, plan: Plan) -> Over:
        assert isinstance(plan, Window)
        below = self.over(plan.child)
        inside = with_expressions(replace(plan, child=below.plan), lambda n: self._in(n, below.by))
        assert isinstance(inside, Window)
        return Over(replace(inside, items=partitioned(inside.items, below.by)), below.by)

    def _single(self, plan: Plan) -> Over:
        assert isinstance(plan, Single)
        below = self.over(plan.child)
        return Over(Single(below.plan, (*plan.keys, *below.by)), below.by)

    def _values(self, plan: Plan) -> Over:
        assert isinstance(plan, Values)
        sides = []
        for row in plan.rows:
            known = self.values()
            columns = tuple(map(self.keys.renewed, plan.columns))
            items = (Named(a, self._in(n, known.by)) for a, n in zip(columns, row, strict=True))
            sides.append(Project(known.plan, (*items, *_passed(known.by))))
        by = tuple(self.keys.renewed(a) for a in sides[0].output[len(plan.columns) :])
        whole: Plan = sides[0]
        for number, side in enumerate(sides[1:], 2):
            last = number == len(sides)
            given = (*plan.columns, *by)
            columns = given if last else tuple(map(self.keys.renewed, given))
            whole = SetOperation("union", True, whole, side, columns)
        if len(sides) == 1:
            items = (Named(a, b.column) for a, b in zip((*plan.columns, *by), sides[0].output, strict=True))
            whole = Project(whole, tuple(items))
        return Over(whole, by)

    def _with(self, plan: Plan) -> Over:
        assert isinstance(plan, With)
        if any(self._is_correlated(p) for _, p in plan.definitions):
            return self.over(inlined(plan, self.keys))
        below = self.over(plan.child)
        return Over(With(plan.definitions, below.plan), below.by)


def _passed(columns: tuple[Attribute, ...]) -> tuple[Named, ...]:
    return tuple(Named(a, a.column) for a in columns)


def _kind(plan: Join, parts: list[Node]) -> tuple[str, Node | None]:
    if plan.kind not in ("inner", "cross"):
        return plan.kind, all_of(parts)
    return ("inner", all_of(parts)) if parts else ("cross", None)


_RULES: dict[type[Plan], Callable[[Domain, Plan], Over]] = {
    Filter: Domain._plain,
    Generate: Domain._plain,
    Project: Domain._project,
    Join: Domain._join,
    Aggregate: Domain._aggregate,
    Distinct: Domain._distinct,
    Sort: Domain._sort,
    Limit: Domain._limit,
    SetOperation: Domain._set_operation,
    Window: Domain._window,
    Single: Domain._single,
    Values: Domain._values,
    With: Domain._with,
}
