"""UNION, INTERSECT and EXCEPT; types are united by projections below them already."""

from __future__ import annotations

from headwater.sql.analyzed.reading import Reading, Rows, Scope, plan
from headwater.sql.analyzed.tree import Tree
from headwater.sql.nodes import Refused
from headwater.sql.plan import SetOperation
from headwater.sql.types import is_key, name_of

__all__: list[str] = []


def _united(reading: Reading, kind: str, left: Rows, right: Rows, *, every: bool) -> Rows:
    columns = []
    for a, b in zip(left.plan.output, right.plan.output, strict=True):
        if a.dtype != b.dtype:
            what = f"{kind.upper()} of {name_of(a.dtype)} and {name_of(b.dtype)} in column `{a.name}`"
            raise Refused(what, "cast one side so that both have one type")
        if not is_key(a.dtype) and kind != "union":
            raise Refused(f"{kind.upper()} of {name_of(a.dtype)}", "compare its fields")
        columns.append(reading.attribute(a.name, a.dtype, nullable=a.nullable or b.nullable))
    return Rows(SetOperation(kind, every, left.plan, right.plan, tuple(columns)), left.ids)


@plan("Union")
def _union(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    if tree.fields.get("byName"):
        raise Refused("UNION BY NAME", "select the columns of both sides in one order")
    made, *others = (reading.rows(child, around) for child in tree.children)
    for other in others:
        made = _united(reading, "union", made, other, every=True)
    return made


@plan("Intersect", "Except")
def _compared(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    left, right = (reading.rows(child, around) for child in tree.children)
    return _united(reading, tree.kind.lower(), left, right, every=bool(tree.fields.get("isAll")))
