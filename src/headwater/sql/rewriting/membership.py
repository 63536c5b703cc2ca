"""EXISTS and IN become joins: semi and anti joins where they are conditions, marks where they are values.

As Spark has it, ``x IN (…)`` is true where a match is found and false otherwise, also where SQL would say null; ``x NOT
IN (…)`` is true only where SQL says so. As conditions of a filter, under AND and OR, that is SQL's answer: null and
false both keep a row out.

NOT IN is an equality of its own and needs no comparison with every row: ``x NOT IN S`` is true if S is empty, or if x
is not null, S has no null and no row of S equals x. How many rows S has and how many of them are not null is counted
per key of the correlation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.sql.nodes import AggregateCall, Column, Literal, Node, SubqueryCall, call
from headwater.sql.nullability import nullable
from headwater.sql.plan import (
    Aggregate,
    Attribute,
    Distinct,
    Filter,
    Join,
    Limit,
    Named,
    Plan,
    Project,
    Reference,
    Sort,
    With,
)
from headwater.sql.rewriting.conditions import TRUE, Equality, Matched, all_of, filtered
from headwater.sql.rewriting.keys import Keys
from headwater.sql.rewriting.lifting import with_columns
from headwater.sql.rewriting.matching import Ready, is_correlated, loosely, tightly
from headwater.sql.rewriting.scalars import Beside
from headwater.sql.types import BOOLEAN, LONG

__all__ = ["kept", "left_out", "mark", "mark_of_absence"]


def kept(subquery: SubqueryCall, rows: Plan, keys: Keys) -> Plan:
    """The rows for which EXISTS or IN is true."""
    plan, known = _existing(subquery)
    if known is not None:
        return rows if known else filtered(rows, [Literal(False, BOOLEAN)])
    if not subquery.args and not is_correlated(plan, rows):
        return _by_count(plan, rows, keys, ">")
    ready = loosely(plan, rows, keys)
    conditions = [*_equalities(subquery, plan), *ready.conditions]
    return ready.whole(Join("semi", ready.rows, ready.plan, all_of(conditions)))


def left_out(subquery: SubqueryCall, rows: Plan, keys: Keys) -> Plan:
    """The rows for which NOT EXISTS or NOT IN is true."""
    plan, known = _existing(subquery)
    if known is not None:
        return filtered(rows, [Literal(False, BOOLEAN)]) if known else rows
    if not subquery.args and not is_correlated(plan, rows):
        return _by_count(plan, rows, keys, "=")
    if not subquery.args or not _may_be_null(subquery, plan):
        ready = loosely(plan, rows, keys)
        conditions = [*_equalities(subquery, plan), *ready.conditions]
        return ready.whole(Join("anti", ready.rows, ready.plan, all_of(conditions)))
    if len(subquery.args) > 1:
        ready = loosely(plan, rows, keys)
        # A row of several columns is unlike another one as soon as one column is: nulls cannot be counted one by one.
        unlike = call("coalesce", (all_of(_equalities(subquery, plan)), TRUE), BOOLEAN)
        return ready.whole(Join("anti", ready.rows, ready.plan, all_of([*ready.conditions, unlike])))
    counted = _counted(subquery, plan, rows, keys)
    possible = Filter(counted.rows, counted.possible)
    joined = Join("anti", possible, counted.plan, all_of(counted.match))
    return counted.whole(_only(joined, rows))


def mark(subquery: SubqueryCall, rows: Plan, keys: Keys) -> Beside:
    """EXISTS or IN as a value beside each row: true or false."""
    plan, known = _existing(subquery)
    if known is not None:
        return Beside(rows, Literal(known, BOOLEAN))
    if not subquery.args and not is_correlated(plan, rows):
        counted = Aggregate(plan, (), (_count(keys, ()),))
        more = call(">", (counted.output[0].column, Literal(0, LONG)), BOOLEAN)
        return Beside(Join("cross", rows, counted, None), more)
    ready = tightly(plan, rows, keys, setlike=True)
    values = (
        tuple(Equality("=", a.column, x) for a, x in zip(plan.output, subquery.args, strict=True))
        if subquery.args
        else ()
    )
    return _marked(replace(ready, on=replace(ready.on, equalities=(*ready.on.equalities, *values))), keys)


def mark_of_absence(subquery: SubqueryCall, rows: Plan, keys: Keys) -> Beside:
    """NOT IN as a value beside each row: true or false."""
    plan, known = _existing(subquery)
    if known is not None or not _may_be_null(subquery, plan):
        found = mark(subquery, rows, keys)
        return Beside(found.rows, call("not", (found.value,), BOOLEAN))
    if len(subquery.args) > 1:
        unlike = call("coalesce", (all_of(_equalities(subquery, plan)), TRUE), BOOLEAN)
        found = mark(SubqueryCall("exists", Filter(plan, unlike), (), BOOLEAN), rows, keys)
        return Beside(found.rows, call("not", (found.value,), BOOLEAN))
    counted = _counted(subquery, plan, rows, keys)
    on = replace(
        counted.on, equalities=(*counted.on.equalities, Equality("=", plan.output[0].column, subquery.args[0]))
    )
    found = _marked(Ready(counted.rows, counted.plan, on), keys)
    value = call("and", (counted.possible, call("not", (found.value,), BOOLEAN)), BOOLEAN)
    return Beside(counted.whole(found.rows), call("coalesce", (value, Literal(False, BOOLEAN)), BOOLEAN))


def _existing(subquery: SubqueryCall) -> tuple[Plan, bool | None]:
    """The plan without what does not change whether there are rows; or the answer, where that is known."""
    plan = subquery.plan
    while not subquery.args:
        if isinstance(plan, Limit) and plan.count == 0:
            return plan, False
        if isinstance(plan, Limit) and plan.offset:
            break
        if isinstance(plan, Aggregate):
            if plan.sets is not None:
                break
            if not plan.keys:
                return plan, True
        elif not isinstance(plan, Project | Sort | Distinct | Limit):
            break
        plan = plan.child
    return plan, None


def _equalities(subquery: SubqueryCall, plan: Plan) -> list[Node]:
    pairs = zip(subquery.args, plan.output, strict=False)
    return [call("=", (x, a.column), BOOLEAN) for x, a in pairs]


def _may_be_null(subquery: SubqueryCall, plan: Plan) -> bool:
    return any(map(nullable, subquery.args)) or any(a.nullable for a in plan.output[: len(subquery.args)])


def _count(keys: Keys, args: tuple[Node, ...]) -> Named:
    return Named(keys.attribute("count", LONG, nullable=False), AggregateCall("count", args, LONG))


def _by_count(plan: Plan, rows: Plan, keys: Keys, op: str) -> Plan:
    """A condition that is the same for all rows: a count, beside every row."""
    counted = Aggregate(plan, (), (_count(keys, ()),))
    number = counted.output[0].column
    joined = Filter(Join("cross", rows, counted, None), call(op, (number, Literal(0, LONG)), BOOLEAN))
    return _only(joined, rows)


def _only(plan: Plan, rows: Plan) -> Plan:
    return Project(plan, tuple(Named(a, a.column) for a in rows.output))


def _marked(ready: Ready, keys: Keys) -> Beside:
    """The rows joined with the distinct values they are compared with, and whether a partner was found."""
    plan, equalities = with_columns(ready.plan, ready.on, keys)
    found = Ready(ready.rows, plan, Matched(equalities, ready.on.outside, ()), ready.definitions)
    compared = {a.key: keys.renewed(a) for a in found.keys}
    items = [Named(compared[a.key], a.column) for a in found.keys]
    strict = [e for e in equalities if e.op == "="]
    if strict:
        assert isinstance(strict[0].inner, Column)
        seen = compared[strict[0].inner.path[0]].column
    else:
        named = Named(keys.attribute("found", BOOLEAN, nullable=False), TRUE)
        items.append(named)
        seen = named.attribute.column
    on = [replace(e, inner=compared[e.inner.path[0]].column).node for e in equalities if isinstance(e.inner, Column)]
    right = Distinct(Project(plan, tuple(items)))
    joined = Join("left", ready.rows, right, all_of([*on, *ready.on.outside]))
    # Behind a left join it may be null, whatever it was before.
    return Beside(ready.whole(joined), call("is not null", (replace(seen, nullable=True),), BOOLEAN))


@dataclass(frozen=True, slots=True)
class _Counted:
    """Rows with the counts of their sets beside them, and when NOT IN is possible at all."""

    rows: Plan
    plan: Plan
    on: Matched
    match: list[Node]
    possible: Node
    definitions: tuple[tuple[str, Plan], ...]

    def whole(self, joined: Plan) -> Plan:
        return With(self.definitions, joined)


def _counted(subquery: SubqueryCall, plan: Plan, rows: Plan, keys: Keys) -> _Counted:
    value, given = subquery.args[0], plan.output[0]
    ready = tightly(plan, rows, keys, setlike=True)
    wanted = tuple(dict.fromkeys((given, *ready.keys)))
    name = keys.name("members")
    members = Project(ready.plan, tuple(Named(a, a.column) for a in wanted))
    definitions = (*ready.definitions, (name, members))

    def read(*, renewed: bool) -> tuple[Plan, dict[str, Attribute]]:
        columns = tuple(map(keys.renewed, wanted)) if renewed else wanted
        return Reference(name, tuple(a.key for a in wanted), columns), dict(
            zip((a.key for a in wanted), columns, strict=True)
        )

    counted, here = read(renewed=True)
    every, some = _count(keys, ()), _count(keys, (here[given.key].column,))
    grouped = Aggregate(counted, tuple(Named(here[a.key], here[a.key].column) for a in ready.keys), (every, some))
    on = [
        replace(e, inner=here[e.inner.path[0]].column).node for e in ready.on.equalities if isinstance(e.inner, Column)
    ]
    on += ready.on.outside
    beside = Join("left", ready.rows, grouped, all_of(on)) if on else Join("cross", ready.rows, grouped, None)
    numbers = [replace(n.attribute, nullable=True).column for n in (every, some)]
    number = call("coalesce", (numbers[0], Literal(0, LONG)), LONG) if on else numbers[0]
    empty = call("=", (number, Literal(0, LONG)), BOOLEAN)
    whole = [call("=", (numbers[0], numbers[1]), BOOLEAN)] if given.nullable else []
    if nullable(value):
        whole.append(call("is not null", (value,), BOOLEAN))
    possible = call("or", (empty, all_of(whole)), BOOLEAN)
    match, _ = read(renewed=False)
    conditions = [*(e.node for e in ready.on.equalities), *ready.on.outside]
    conditions.append(call("=", (value, given.column), BOOLEAN))
    return _Counted(beside, match, ready.on, conditions, possible, definitions)
