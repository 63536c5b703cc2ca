"""Spark's JSON of a tree, as a tree.

A tree is a list of nodes in pre-order, each with the number of its children; a field may hold a tree of its own (the
expressions of a plan node, the plan of a subquery), or lists of such trees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.base.errors import InputError

__all__ = ["Tree", "parsed"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Tree:
    """A node of Spark's: the name of its class, its fields, and the nodes below it."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Tree, ...]

    def tree(self, field: str) -> Tree:
        """A field that is a tree."""
        return _tree(self.fields[field])

    def trees(self, field: str) -> list[Tree]:
        """A field that is a list of trees."""
        return [_tree(value) for value in self.fields[field]]

    def walk(self) -> Iterator[Tree]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def _tree(nodes: Sequence[Mapping[str, Any]]) -> Tree:
    # From the last node to the first: when a node is met, its children lie on top of the stack.
    stack: list[Tree] = []
    for node in reversed(nodes):
        count = int(node["num-children"])
        children = tuple(stack.pop() for _ in range(count))
        stack.append(Tree(str(node["class"]), node, children))
    (found,) = stack
    return found


def parsed(text: str) -> Tree:
    """The root of a plan that `headwater.spark.analyzer` gave.

    >>> parsed('{"format": 1, "plan": [{"class": "OneRowRelation", "num-children": 0}]}').kind
    'OneRowRelation'
    """
    refusal = InputError.bad_argument("json_text", text[:60], "a plan as headwater.spark.analyzer gives it")
    try:
        found = json.loads(text)
        version = found["format"]
    except (ValueError, KeyError, TypeError):
        raise refusal from None
    if version != _FORMAT:
        raise InputError.bad_argument("format", version, f"{_FORMAT}, which this version reads")
    try:
        return _tree(found["plan"])
    except (ValueError, KeyError, TypeError, IndexError):
        raise refusal from None
