"""Equalities: which parts of a join's condition become its key.

``l.a = r.b`` says that rows meet by a key, and so does ``l.a + 1 = abs(r.b)``: each side of it reads one side of the
join only. ``<=>`` is the same with nulls that meet each other. What is left of the condition is looked at for each pair
of rows with equal keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.incremental.planning.shape import keys_of
from headwater.sql.nodes import Call, Node, call
from headwater.sql.plan import Attribute
from headwater.sql.types import BOOLEAN

__all__ = ["Equality", "conjunction", "equalities", "parts_of_conjunction"]


@dataclass(frozen=True, slots=True)
class Equality:
    """One column of a key: an expression of the left rows and one of the right rows."""

    left: Node
    right: Node
    nulls_match: bool = False


def parts_of_conjunction(condition: Node | None) -> list[Node]:
    """The parts of a conjunction, of nested ones too."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.op == "and":
        return [part for arg in condition.args for part in parts_of_conjunction(arg)]
    return [condition]


def conjunction(parts: Sequence[Node]) -> Node | None:
    """One condition of many; None of none."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else call("and", tuple(parts), BOOLEAN)


def equalities(
    condition: Node | None, left: Sequence[Attribute], right: Sequence[Attribute]
) -> tuple[list[Equality], list[Node]]:
    """The key of a join on a condition, and what is left of it."""
    mine, theirs = {a.key for a in left}, {a.key for a in right}
    found: list[Equality] = []
    rest: list[Node] = []
    for part in parts_of_conjunction(condition):
        if isinstance(part, Call) and part.op in ("=", "<=>") and part.args[0].dtype == part.args[1].dtype:
            a, b = part.args
            x, y = keys_of(a), keys_of(b)
            safe = part.op == "<=>"
            if x and y and x <= mine and y <= theirs:
                found.append(Equality(a, b, safe))
                continue
            if x and y and x <= theirs and y <= mine:
                found.append(Equality(b, a, safe))
                continue
        rest.append(part)
    return found, rest
