"""Expressions over a projection, in terms of what the projection reads."""

from __future__ import annotations

from headwater.sql.nodes import Column, Literal, Node, call, rewrite
from headwater.sql.plan import Project
from headwater.sql.types import STRING

__all__ = ["composed"]


def composed(node: Node, project: Project) -> Node:
    """``node`` over the rows below ``project``; columns that the projection does not make stay.

    >>> import pyarrow as pa
    >>> from headwater.sql.plan import Attribute, Named, Values
    >>> one = Named(Attribute("b", "b#1", pa.int32()), Literal(1, pa.int32()))
    >>> composed(Column(None, ("b#1",), pa.int32()), Project(Values(((),), ()), (one,)))
    Literal(value=1, dtype=DataType(int32))
    """
    items = {i.attribute.key: i.node for i in project.items}

    def change(part: Node) -> Node | None:
        if not isinstance(part, Column) or part.path[0] not in items:
            return None
        found = items[part.path[0]]
        fields = part.path[1:]
        if isinstance(found, Column):
            return Column(found.alias, (*found.path, *fields), part.dtype, part.nullable) if fields else found
        for name in fields:
            inner = found.dtype.field(name).type
            found = call("field", (found, Literal(name, STRING)), inner)
        return found

    return rewrite(node, change)
