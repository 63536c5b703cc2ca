"""Conditions taken apart into conjuncts, and put together again.

A conjunct between a query and a plan inside of it is one of three: an *equality* of an expression of the plan and one
of the query, which a join looks up; an *outside* one, which reads the query only; or any other comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwater.sql.nodes import Call, Literal, Node, call
from headwater.sql.plan import Filter, Plan
from headwater.sql.rewriting.keys import reads
from headwater.sql.types import BOOLEAN

__all__ = ["TRUE", "Equality", "Matched", "all_of", "conjuncts", "filtered", "is_true", "matched", "null_safe"]

TRUE = Literal(True, BOOLEAN)


def conjuncts(condition: Node | None) -> list[Node]:
    """The parts of a conjunction, also of those inside of it.

    >>> inner = call("and", (TRUE, Literal(False, BOOLEAN)), BOOLEAN)
    >>> [c.value for c in conjuncts(call("and", (TRUE, inner), BOOLEAN))]
    [False]
    """
    if condition is None or is_true(condition):
        return []
    if isinstance(condition, Call) and condition.op == "and":
        return [c for part in condition.args for c in conjuncts(part)]
    return [condition]


def is_true(node: Node) -> bool:
    """Is it the constant?"""
    return isinstance(node, Literal) and node.value is True


def all_of(parts: Iterable[Node]) -> Node:
    """One condition of many; none is TRUE."""
    found = list(dict.fromkeys(parts))
    if len(found) < 2:
        return found[0] if found else TRUE
    return call("and", tuple(found), BOOLEAN)


def filtered(plan: Plan, parts: Sequence[Node]) -> Plan:
    """The rows of a plan for which all parts hold."""
    return Filter(plan, all_of(parts)) if parts else plan


def null_safe(left: Node, right: Node) -> Node:
    """``left <=> right``."""
    return call("<=>", (left, right), BOOLEAN)


@dataclass(frozen=True, slots=True)
class Equality:
    """``inner op outer``, where op is ``=`` or ``<=>``."""

    op: str
    inner: Node
    outer: Node

    @property
    def node(self) -> Node:
        return call(self.op, (self.outer, self.inner), BOOLEAN)


@dataclass(frozen=True, slots=True)
class Matched:
    """Conjuncts by their kinds."""

    equalities: tuple[Equality, ...]
    outside: tuple[Node, ...]
    others: tuple[Node, ...]


def matched(parts: Iterable[Node], plan: Plan) -> Matched:
    """The conjuncts by kind; what is not a column of ``plan`` is one of the queries around it."""
    inside = {a.key for a in plan.output}
    equalities, outside, others = [], [], []
    for part in parts:
        found = _equality(part, inside)
        if found is not None:
            equalities.append(found)
        elif not reads(part) & inside:
            outside.append(part)
        else:
            others.append(part)
    return Matched(tuple(equalities), tuple(outside), tuple(others))


def _equality(node: Node, inside: set[str]) -> Equality | None:
    if not isinstance(node, Call) or node.op not in ("=", "<=>"):
        return None
    for inner, other in (node.args, node.args[::-1]):
        mine, theirs = reads(inner), reads(other)
        if mine and mine <= inside and theirs and not theirs & inside:
            return Equality(node.op, inner, other)
    return None
