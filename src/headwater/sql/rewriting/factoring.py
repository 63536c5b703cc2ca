"""What every part of an OR asks for, said once; and what an OR asks of one relation by itself.

``(a = b AND c = 1) OR (a = b AND d = 2)`` is ``a = b AND (c = 1 OR d = 2)``, and a join can use the first part. What is
left of the OR cannot be moved into a join's sides, but it implies conditions that can: of ``(x = 1 AND y = 2) OR (x = 3
AND y = 4)``, the rows of x's relation need ``x = 1 OR x = 3``.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.nodes import Call, Node, call
from headwater.sql.rewriting.conditions import all_of, conjuncts
from headwater.sql.rewriting.keys import reads
from headwater.sql.types import BOOLEAN

__all__ = ["factored", "implied"]


def factored(parts: Sequence[Node]) -> list[Node]:
    """The conjuncts, with what is common to all parts of an OR as conjuncts of their own."""
    return [c for part in parts for c in _factored(part)]


def _factored(node: Node) -> list[Node]:
    branches = _branches(node)
    if not branches:
        return [node]
    common = [c for c in branches[0] if not c.fallible and all(c in b for b in branches[1:])]
    if not common:
        return [node]
    rest = [[c for c in b if c not in common] for b in branches]
    if not all(rest):
        return common  # one of them asks for nothing more
    return [*common, call("or", tuple(map(all_of, rest)), BOOLEAN)]


def implied(node: Node, relation: set[str]) -> Node | None:
    """The condition on the columns of one relation that an OR implies, or None."""
    branches = _branches(node)
    mine = [[c for c in b if not c.fallible and reads(c) and reads(c) <= relation] for b in branches]
    if not branches or not all(mine):
        return None
    found = call("or", tuple(dict.fromkeys(map(all_of, mine))), BOOLEAN)
    return found.args[0] if len(found.args) == 1 else found


def _branches(node: Node) -> list[list[Node]]:
    if not isinstance(node, Call) or node.op != "or":
        return []
    return [conjuncts(part) for part in _alternatives(node)]


def _alternatives(node: Node) -> list[Node]:
    if isinstance(node, Call) and node.op == "or":
        return [a for part in node.args for a in _alternatives(part)]
    return [node]
