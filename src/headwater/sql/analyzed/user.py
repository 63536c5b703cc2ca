"""The user's own functions: Spark knows their names and what they return, the rest is ours."""

from __future__ import annotations

from headwater.base.errors import Action
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.functions.user import apply_user
from headwater.sql.nodes import Node, Refused

__all__: list[str] = []


@expression("PythonUDF")
def _user(reader: Expressions, tree: Tree) -> Node:
    name = str(tree.fields["name"])
    function = reader.reading.user_functions.get(name.lower())
    if function is None:
        what = f"the Python function {name}(), which is not registered here,"
        raise Refused(what, Action("register_function", name=name))
    return apply_user(function, reader.children(tree))
