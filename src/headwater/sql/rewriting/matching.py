"""A subquery's plan, ready to be joined with the rows it is correlated with.

Correlated conditions are taken out (`lifting`) or, where that does not go, the plan is computed for the distinct values
of the rows (`domain`). Either way what is left is a plan of its own and the conditions of a join.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Column, Node
from headwater.sql.plan import Attribute, Plan, Reference, With
from headwater.sql.rewriting.conditions import Equality, Matched, matched
from headwater.sql.rewriting.domain import Domain
from headwater.sql.rewriting.keys import Keys, free
from headwater.sql.rewriting.lifting import lifted, with_columns

__all__ = ["Ready", "correlation", "is_correlated", "loosely", "per_row", "tightly"]


@dataclass(frozen=True, slots=True)
class Ready:
    """``plan`` is to be joined with ``rows`` (those around the subquery) on ``on``; both may read ``definitions``."""

    rows: Plan
    plan: Plan
    on: Matched
    definitions: tuple[tuple[str, Plan], ...] = ()

    def whole(self, joined: Plan) -> Plan:
        """What was made of rows and plan, with the definitions they read."""
        return With(self.definitions, joined) if self.definitions else joined

    @property
    def conditions(self) -> list[Node]:
        """The conjuncts of the join."""
        return [*(e.node for e in self.on.equalities), *self.on.outside, *self.on.others]

    @property
    def keys(self) -> tuple[Attribute, ...]:
        """The plan's columns that are compared, where all equalities are of columns."""
        columns = {a.key: a for a in self.plan.output}
        paths = (e.inner.path[0] for e in self.on.equalities if isinstance(e.inner, Column))
        return tuple(dict.fromkeys(columns[p] for p in paths))


def correlation(plan: Plan, rows: Plan) -> tuple[Column, ...]:
    """The columns of ``rows`` that a subquery's plan reads."""
    theirs = {a.key for a in rows.output}
    return tuple(c for c in free(plan) if c.path[0] in theirs)


def is_correlated(plan: Plan, rows: Plan) -> bool:
    """Does the plan read columns of the rows around it?"""
    return bool(correlation(plan, rows))


def loosely(plan: Plan, rows: Plan, keys: Keys) -> Ready:
    """For EXISTS and IN: rows may come twice, and any comparison may be left for the join."""
    outer = {a.key for a in rows.output}
    found = lifted(plan, outer, keys, setlike=True)
    if found is None:
        return per_row(plan, rows, keys)
    return Ready(rows, found.plan, matched(found.conditions, found.plan))


def tightly(plan: Plan, rows: Plan, keys: Keys, *, setlike: bool = False) -> Ready:
    """For groups: the rows as often as they come, found by equalities of columns and by nothing else."""
    outer = {a.key for a in rows.output}
    found = lifted(plan, outer, keys, setlike=setlike)
    on = None if found is None else matched(found.conditions, found.plan)
    if found is None or on is None or on.others:
        return per_row(plan, rows, keys)
    columns, equalities = with_columns(found.plan, on, keys)
    return Ready(rows, columns, Matched(equalities, on.outside, ()))


def per_row(plan: Plan, rows: Plan, keys: Keys) -> Ready:
    """The plan for each value that the rows have: only of those are there rows in it."""
    read = correlation(plan, rows)
    name = keys.name("rows")
    here = Reference(name, tuple(a.key for a in rows.output), rows.output)
    over = Domain(here, read, keys).over(plan)
    equalities = tuple(Equality("<=>", a.column, c) for c, a in zip(read, over.by, strict=True))
    return Ready(here, over.plan, Matched(equalities, (), ()), ((name, rows),))
