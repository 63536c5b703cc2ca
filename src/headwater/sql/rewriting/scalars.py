"""A scalar subquery becomes a left join with the values it gives, and an expression over them.

- An aggregate without GROUP BY gives one row. Correlated, it is computed per key and joined; a key without rows finds
  no partner, and gets what the aggregate says of no rows (`emptiness`). Not correlated, its one row stands beside every
  row.
- Anything else may give no row, which is null, or by mistake two, which `Single` does not let pass. Only the rows that
  belong to some row of the query around are looked at, so it fails only where Spark does.

What stands above the aggregate, a projection or HAVING, is computed behind the join: over the value that a missing
group has, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.calls import apply_aggregate
from headwater.sql.nodes import Literal, Node, SubqueryCall, call
from headwater.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Named,
    Plan,
    Project,
    Single,
    Sort,
    Values,
    With,
)
from headwater.sql.rewriting.conditions import TRUE, all_of
from headwater.sql.rewriting.emptiness import of_no_rows
from headwater.sql.rewriting.keys import Keys, columns_of
from headwater.sql.rewriting.matching import is_correlated, per_row, tightly
from headwater.sql.rewriting.projections import composed
from headwater.sql.types import is_comparable

__all__ = ["Beside", "OverAggregate", "over_aggregate", "scalar"]


@dataclass(frozen=True, slots=True)
class Beside:
    """Rows with more columns, and what the subquery is in terms of them."""

    rows: Plan
    value: Node


def scalar(subquery: SubqueryCall, rows: Plan, keys: Keys) -> Beside:
    """The subquery's value beside each row."""
    plan = subquery.plan
    if isinstance(plan, Project) and _is_one_row(plan.child):
        return Beside(rows, plan.items[0].node)
    found = over_aggregate(plan)
    if found is not None:
        return _aggregated(found, rows, keys)
    if not is_correlated(plan, rows):
        return _alone(plan, rows, keys)
    ready = per_row(plan, rows, keys)
    right = ready.plan if _at_most_one(plan) else Single(ready.plan, ready.keys)
    whole = ready.whole(Join("left", ready.rows, right, all_of(ready.conditions)))
    return Beside(whole, plan.output[0].column)


@dataclass(frozen=True, slots=True)
class OverAggregate:
    """An aggregate of one row, the conditions above it, and the output's values in terms of its columns."""

    aggregate: Aggregate
    conditions: tuple[Node, ...]
    values: tuple[Node, ...]


def over_aggregate(plan: Plan) -> OverAggregate | None:
    """What stands above an aggregate without keys; None where there is another plan."""
    values: list[Node] = [a.column for a in plan.output]
    conditions: list[Node] = []
    while not isinstance(plan, Aggregate):
        if isinstance(plan, Project):
            values = [composed(v, plan) for v in values]
            conditions = [composed(c, plan) for c in conditions]
        elif isinstance(plan, Filter):
            conditions.append(plan.condition)
        elif isinstance(plan, Limit):
            if plan.offset or plan.count == 0:
                return None
        elif not isinstance(plan, Sort | Distinct):
            return None
        plan = plan.child
    if plan.keys or plan.sets is not None:
        return None
    return OverAggregate(plan, tuple(conditions), tuple(values))


def _aggregated(found: OverAggregate, rows: Plan, keys: Keys) -> Beside:
    plan = found.aggregate
    value = found.values[0]
    if found.conditions:
        value = _when(found.conditions, value)
    correlated_inside = any(c.path[0] in {a.key for a in rows.output} for e in plan.expressions for c in columns_of(e))
    if not is_correlated(plan, rows):
        return Beside(Join("cross", rows, plan, None), value)
    if correlated_inside:
        ready = per_row(plan, rows, keys)
        return Beside(ready.whole(Join("left", ready.rows, ready.plan, all_of(ready.conditions))), value)
    ready = tightly(plan.child, rows, keys)
    grouped = Aggregate(ready.plan, tuple(Named(a, a.column) for a in ready.keys), plan.aggregates)
    whole = ready.whole(Join("left", ready.rows, grouped, all_of(ready.conditions)))
    empty = Project(plan, tuple(Named(a.attribute, of_no_rows(a)) for a in plan.aggregates))
    return Beside(whole, composed(value, empty))


def _when(conditions: tuple[Node, ...], value: Node) -> Node:
    return call("case", (all_of(conditions), value, Literal(None, value.dtype)), value.dtype)


def _alone(plan: Plan, rows: Plan, keys: Keys) -> Beside:
    """A subquery that is the same for every row: at most one row, made exactly one by an aggregate over it."""
    single: Plan = plan if _at_most_one(plan) else Single(plan, ())
    column = plan.output[0].column
    if not is_comparable(column.dtype):
        return Beside(Join("left", rows, single, TRUE), column)
    named = Named(keys.attribute("value", column.dtype), apply_aggregate("max", [column]))
    return Beside(Join("cross", rows, Aggregate(single, (), (named,)), None), named.attribute.column)


def _is_one_row(plan: Plan) -> bool:
    return isinstance(plan, Values) and len(plan.rows) == 1 and not plan.columns


def _at_most_one(plan: Plan) -> bool:
    """Can there be no second row, whatever the tables hold?"""
    if isinstance(plan, Aggregate):
        return not plan.keys and plan.sets is None
    if isinstance(plan, Values):
        return len(plan.rows) <= 1
    if isinstance(plan, Limit) and plan.count is not None and plan.count <= 1:
        return True
    if isinstance(plan, Single):
        return not plan.keys
    if isinstance(plan, Join):
        sides = (plan.left,) if plan.kind in ("semi", "anti") else (plan.left, plan.right)
        return plan.kind != "full" and all(map(_at_most_one, sides))
    if isinstance(plan, Project | Filter | Sort | Distinct | Limit | With):
        return _at_most_one(plan.child)
    return False
