"""Spark's trees as JSON, made small and whole.

``TreeNode.toJSON`` writes a tree as a list of its nodes in pre-order, each with its class, the number of its children
and its fields. It tells too much (the identity of the JVM, the text of a view, children twice) and too little:
enumerations such as a cast's mode are null, the bytes of a binary are the name of a Java object, and the rows of VALUES
are left out. Here the first is cut off and the second is asked of the objects themselves, along the paths that lead to
them and nowhere else, because every question to the JVM costs a tenth of a millisecond.

Invariants: the list stays in Spark's form (pre-order, ``num-children``), so that it can be read next to Spark's own;
what this file adds is under Spark's own names of the fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

__all__ = ["Tree", "bare", "completed", "end_of", "is_tree", "short"]

Tree = list[dict[str, Any]]
_DROPPED = frozenset(
    [
        "qualifier",
        "nonInheritableMetadataKeys",
        "explicitMetadata",
        "sameOrderExpressions",
        "resultId",
        "metadata",
        "mutableAggBufferOffset",
        "inputAggBufferOffset",
        "jvmId",
        "hint",
        "outerAttrs",
        "joinCond",
        "isStreaming",
    ]
)
# Fields of expressions with trees of their own: subqueries, outer references, the names of arrays_zip().
_OWN_TREES = frozenset({"plan", "e", "names"})
# How Spark marks the columns of window() and session_window(), in metadata that its JSON leaves out.
_WINDOWS = {"spark.timeWindow": "timeWindow", "spark.sessionWindow": "sessionWindow"}
_ROWS = "headwater_rows"
# Fields that are null in Spark's JSON whatever they are, and classes with more of them.
_UNTOLD: dict[str, Callable[[Any], tuple[str, str]]] = {
    "evalMode": lambda found: ("evalMode", str(found.evalMode().toString())),
    "evalContext": lambda found: ("evalMode", str(found.evalContext().evalMode().toString())),
    "escapeChar": lambda found: ("escapeChar", str(found.escapeChar())),
}
_LIKES = ("LikeAll", "LikeAny", "NotLikeAll", "NotLikeAny")
_SILENT = frozenset(
    [
        *(
            "CommonExpressionRef",
            "CommonExpressionDef",
            "JsonToStructs",
            "LocalRelation",
            "PivotFirst",
            "StructsToJson",
        ),
        *_LIKES,
    ]
)


def short(name: str) -> str:
    """The class without its package.

    >>> short("org.apache.spark.sql.catalyst.plans.Inner$")
    'Inner'
    """
    return name.rsplit(".", 1)[-1].rstrip("$")


def is_tree(value: object) -> bool:
    """Is it the list of a tree's nodes?

    >>> is_tree([{"class": "a.B", "num-children": 0}]), is_tree([0, 1])
    (True, False)
    """
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "class" in value[0]


def end_of(nodes: Tree, start: int) -> int:
    """The place behind the subtree that begins at ``start``."""
    at, open_ = start, 1
    while open_:
        open_ += int(nodes[at].get("num-children", 0)) - 1
        at += 1
    return at


def bare(nodes: Tree, relations: Mapping[str, str]) -> Tree:
    """The tree without what nobody reads; a view of ours becomes a ``Relation`` with its name and columns."""
    out: Tree = []
    at = 0
    while at < len(nodes):
        node = nodes[at]
        name = _view(node)
        if name is not None and name in relations:
            last = end_of(nodes, at)
            output = _bare_value(nodes[at + 1].get("output", []), relations)
            out.append({"class": "Relation", "num-children": 0, "name": relations[name], "output": output})
            at = last
            continue
        made: dict[str, Any] = {"class": short(node["class"]), "num-children": int(node.get("num-children", 0))}
        for key, value in node.items():
            if key in made or key in _DROPPED or (key == "data" and value is None):
                continue
            if not _is_repeated(node, key):
                made[key] = _bare_value(value, relations)
        out.append(made)
        at += 1
    return out


def _is_repeated(node: Mapping[str, Any], key: str) -> bool:
    """Fields of an expression that hold trees say again what its children are, or what they were before coercion."""
    if not _is_expression(node) or key in _OWN_TREES:
        return False
    value = node[key]
    return ("replacement" in node and key != "replacement") or (
        isinstance(value, list) and bool(value) and not isinstance(value[0], int)
    )


def _is_expression(node: Mapping[str, Any]) -> bool:
    return ".expressions." in str(node["class"]) or "analysis.Type" in str(node["class"])


def _view(node: Mapping[str, Any]) -> str | None:
    if short(node["class"]) != "View" or not node.get("isTempView"):
        return None
    return str(node["desc"]["identifier"]["table"]).lower()


def _bare_value(value: Any, relations: Mapping[str, str]) -> Any:
    if is_tree(value):
        return bare(value, relations)
    if isinstance(value, list):
        return [_bare_value(v, relations) for v in value]
    if isinstance(value, dict):
        if "jvmId" in value:
            return value["id"]
        if "object" in value:
            return short(value["object"])
        return {k: _bare_value(v, relations) for k, v in value.items() if k != "product-class"}
    return value


def completed(nodes: Tree, root: Any, rows_of: Callable[[str], list[Tree]], sql_of: Callable[[Any, Any], str]) -> None:
    """Fill in what Spark's JSON leaves out; ``root`` is the tree's object.

    ``rows_of`` gives the select list of a text, ``sql_of`` the text of a value of Spark's inside, of a type.
    """
    _Completion(nodes, rows_of, sql_of).node(0, root)


class _Completion:
    def __init__(self, nodes: Tree, rows_of: Callable[[str], list[Tree]], sql_of: Callable[[Any, Any], str]) -> None:
        self.nodes, self.rows_of, self.sql_of = nodes, rows_of, sql_of
        self.lacking: list[bool] = [False] * len(nodes)
        # From the last node to the first: a node lacks something if it or one of its subtrees does.
        for at in range(len(nodes) - 1, -1, -1):
            self.lacking[at] = _lacks(nodes[at]) or any(self.lacking[c] for c in self._children(at))

    def _children(self, at: int) -> Iterator[int]:
        child = at + 1
        for _ in range(self.nodes[at]["num-children"]):
            yield child
            child = end_of(self.nodes, child)

    def node(self, at: int, found: Any) -> None:
        if not self.lacking[at]:
            return
        node = self.nodes[at]
        self._told(node, found)
        for key, value in node.items():
            if _holds_trees(node, key) and _trees_lack(value):
                self._value(value, getattr(found, key)())
        for number, child in enumerate(self._children(at)):
            if self.lacking[child]:
                self.node(child, found.children().apply(number))

    def _told(self, node: dict[str, Any], found: Any) -> None:
        """What one node's object says that its JSON does not."""
        kind = node["class"]
        for field, ask in _UNTOLD.items():
            if field in node:
                del node[field]
                name, node_value = ask(found)
                node[name] = node_value
        if kind == "AttributeReference":
            told = str(found.metadata().toString())
            node.update(dict.fromkeys((name for mark, name in _WINDOWS.items() if mark in told), True))
        elif kind in ("JsonToStructs", "StructsToJson"):
            node["options"] = str(found.options().toString())
        elif kind in ("CommonExpressionRef", "CommonExpressionDef"):
            node["id"] = int(found.id().id())
        elif kind == "Literal" and node.get("dataType") == "binary" and node.get("value") is not None:
            node["value"] = found.sql()
        elif kind in _LIKES:
            patterns = found.patterns()
            node["patterns"] = [str(patterns.apply(n).toString()) for n in range(patterns.size())]
        elif kind == "PivotFirst":
            node["pivotColumnValues"] = self._pivot_values(found)
        elif kind == "LocalRelation":
            node["rows"] = self._rows(found)

    def _value(self, value: Any, found: Any) -> None:
        if is_tree(value):
            if found.getClass().getSimpleName() == "Some":
                found = found.get()
            _Completion(value, self.rows_of, self.sql_of).node(0, found)
            return
        for number, part in enumerate(value):
            if _trees_lack(part):
                self._value(part, found.apply(number))

    def _pivot_values(self, found: Any) -> list[Tree]:
        """The constants that a PIVOT spreads, which are values of Spark's inside: a day is a number, a struct a row."""
        dtype, values = found.pivotColumn().dataType(), found.pivotColumnValues()
        given = json.loads(dtype.json())
        out: list[Tree] = []
        for number in range(values.size()):
            value = values.apply(number)
            if value is not None and isinstance(given, dict):
                out += self.rows_of(f"SELECT {self.sql_of(value, dtype)}")
                continue
            text = None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            if text is not None and given == "date":
                text = date.fromordinal(int(text) + date(1970, 1, 1).toordinal()).isoformat()
            elif text is not None and given == "timestamp":
                text = str(datetime(1970, 1, 1) + timedelta(microseconds=int(text)))  # noqa: DTZ001
            out.append([{"class": "Literal", "num-children": 0, "value": text, "dataType": given}])
        return out

    def _rows(self, found: Any) -> list[Tree]:
        """The rows of VALUES: Spark writes them as SQL, and reads that as a select list of one struct a row."""
        if found.data().isEmpty():
            return []
        text = str(found.toSQL(_ROWS)).removeprefix("VALUES ")
        return self.rows_of("SELECT " + text[: text.rindex(f" AS {_ROWS}(")])


def _holds_trees(node: Mapping[str, Any], key: str) -> bool:
    return isinstance(node[key], list) and key not in ("output", "rows", "names", "pivotColumnValues")


def _lacks(node: Mapping[str, Any]) -> bool:
    if _UNTOLD.keys() & node.keys() or node["class"] in _SILENT:
        return True
    if node["class"] == "Literal" and node.get("dataType") == "binary":
        return True
    if node["class"] == "AttributeReference" and _is_window(node.get("dataType")):
        return True
    return any(_holds_trees(node, key) and _trees_lack(value) for key, value in node.items())


def _is_window(dtype: Any) -> bool:
    return isinstance(dtype, dict) and [f["name"] for f in dtype.get("fields", ())] == ["start", "end"]


def _trees_lack(value: Any) -> bool:
    if is_tree(value):
        return any(map(_lacks, value))
    return isinstance(value, list) and any(map(_trees_lack, value))
