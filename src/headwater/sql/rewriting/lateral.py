"""LATERAL: a join whose right side reads the left one becomes a join of two plans of their own.

The conditions that the right side has with the left one rise into the join (`lifting`); where they cannot, the right
side is computed for the distinct values it reads (`domain`). An aggregate without GROUP BY is grouped by what it is
compared with, and joined from the left.
"""

from __future__ import annotations

from headwater.sql.plan import Aggregate, Join, Named, Plan, Project, Values
from headwater.sql.rewriting.conditions import all_of, conjuncts, filtered, matched
from headwater.sql.rewriting.emptiness import of_no_rows
from headwater.sql.rewriting.keys import Keys, reads
from headwater.sql.rewriting.lifting import lifted
from headwater.sql.rewriting.matching import Ready, is_correlated, per_row, tightly
from headwater.sql.rewriting.projections import composed
from headwater.sql.rewriting.scalars import over_aggregate

__all__ = ["is_lateral", "without_lateral"]


def is_lateral(plan: Join) -> bool:
    """Does the right side read columns of the left one?"""
    return is_correlated(plan.right, plan.left)


def without_lateral(plan: Join, keys: Keys) -> Plan:
    """The same rows, without a side that reads the other one."""
    own = conjuncts(plan.condition)
    whole = None
    if plan.kind != "left" or not own:
        whole = _computed(plan) or (_grouped(plan, keys) if plan.kind != "left" else None)
    if whole is not None:
        whole = filtered(whole, own)
    else:
        outer = {a.key for a in plan.left.output}
        found = lifted(plan.right, outer, keys)
        if found is None:
            ready = per_row(plan.right, plan.left, keys)
        else:
            ready = Ready(plan.left, found.plan, matched(found.conditions, found.plan))
        kind = "left" if plan.kind == "left" else "inner"
        whole = ready.whole(Join(kind, ready.rows, ready.plan, all_of([*ready.conditions, *own])))
    return Project(whole, tuple(Named(a, a.column) for a in plan.output))


def _computed(plan: Join) -> Plan | None:
    """LATERAL (SELECT f(t.a) AS x): an expression of the row."""
    right = plan.right
    if not isinstance(right, Project) or not isinstance(right.child, Values) or right.child.columns:
        return None
    if len(right.child.rows) != 1:
        return None
    return Project(plan.left, (*(Named(a, a.column) for a in plan.left.output), *right.items))


def _grouped(plan: Join, keys: Keys) -> Plan | None:
    found = over_aggregate(plan.right)
    theirs = {a.key for a in plan.left.output}
    if found is None or any(reads(e) & theirs for e in found.aggregate.expressions):
        return None
    aggregate = found.aggregate
    if not is_correlated(aggregate, plan.left):
        whole: Plan = Join("cross", plan.left, aggregate, None)
        empty = Project(aggregate, tuple(Named(a.attribute, a.attribute.column) for a in aggregate.aggregates))
    else:
        ready = tightly(aggregate.child, plan.left, keys)
        grouped = Aggregate(ready.plan, tuple(Named(a, a.column) for a in ready.keys), aggregate.aggregates)
        whole = ready.whole(Join("left", ready.rows, grouped, all_of(ready.conditions)))
        empty = Project(aggregate, tuple(Named(a.attribute, of_no_rows(a)) for a in aggregate.aggregates))
    whole = filtered(whole, [composed(c, empty) for c in found.conditions])
    values = zip(plan.right.output, found.values, strict=True)
    made = (Named(a, composed(v, empty)) for a, v in values)
    return Project(whole, (*(Named(a, a.column) for a in plan.left.output), *made))
