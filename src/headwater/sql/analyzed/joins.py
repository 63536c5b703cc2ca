"""Joins of two relations."""

from __future__ import annotations

from headwater.sql.analyzed.reading import Expressions, Reading, Rows, Scope, plan
from headwater.sql.analyzed.tree import Tree
from headwater.sql.nodes import Literal, Node, Refused
from headwater.sql.plan import Join
from headwater.sql.rewriting.negation import negation_inside
from headwater.sql.types import BOOLEAN

__all__: list[str] = []

_KINDS = {
    "Inner": "inner",
    "Cross": "cross",
    "LeftOuter": "left",
    "RightOuter": "right",
    "FullOuter": "full",
    "LeftSemi": "semi",
    "LeftAnti": "anti",
}


@plan("Join")
def _join(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    kind = _KINDS.get(str(tree.fields["joinType"]))
    if kind is None:
        raise Refused(
            f"Spark's join {tree.fields['joinType']}", "use INNER, LEFT, RIGHT, FULL, SEMI, ANTI or CROSS JOIN"
        )
    left, right = (reading.rows(child, around) for child in tree.children)
    condition: Node | None = None
    if tree.fields.get("condition"):
        scope = Scope({**right.columns, **left.columns}, around)
        condition = negation_inside(Expressions(reading, scope).read(tree.tree("condition")))
        kind = "inner" if kind == "cross" else kind
    elif kind in ("inner", "cross"):
        kind = "cross"
    else:
        condition = Literal(True, BOOLEAN)
    ids = left.ids if kind in ("semi", "anti") else left.ids + right.ids
    return Rows(Join(kind, left.plan, right.plan, condition), ids)
