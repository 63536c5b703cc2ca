"""A tree that is written as a query is read as the same tree."""

from __future__ import annotations

from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.language.trees import QUERIES, TEXTS, trees

from headwater.base.errors import SearchQueryError
from headwater.search.language import (
    Node,
    Not,
    Term,
    join_path,
    leaves,
    parse,
    parse_leniently,
    render,
    split_path,
    walk,
)
from headwater.search.language.tree import children

_MANY = settings(max_examples=max(300, settings.default.max_examples if settings.default else 0))


@_MANY
@given(trees(), st.sampled_from(["or", "and"]))
def test_a_tree_comes_back(tree: Node, default: Literal["or", "and"]) -> None:
    text = render(tree, default=default)
    assert parse(text, default=default) == tree
    assert parse_leniently(text, default=default) == (tree, ())


@_MANY
@given(QUERIES, st.sampled_from(["or", "and"]))
def test_what_was_read_can_be_written(text: str, default: Literal["or", "and"]) -> None:
    try:
        tree = parse(text, default=default)
    except SearchQueryError:
        tree, _ = parse_leniently(text, default=default)
    assert parse(render(tree, default=default), default=default) == tree


@given(trees())
def test_every_node_is_walked_once_before_its_children(tree: Node) -> None:
    seen = list(walk(tree))

    def recursive(node: Node) -> list[Node]:
        return [node, *(one for child in children(node) for one in recursive(child))]

    assert seen == recursive(tree)
    assert list(leaves(tree)) == [node for node in seen if not children(node)]


@given(st.lists(TEXTS, min_size=1))
def test_a_path_comes_back(names: list[str]) -> None:
    assert split_path(join_path(names)) == tuple(names)


def test_a_tree_that_was_never_read_may_be_deeper_than_the_stack() -> None:
    tree: Node = Term(None, "a")
    for _ in range(20_000):
        tree = Not(tree)
    assert render(tree) == "NOT (" * 19_999 + "NOT a" + ")" * 19_999
    assert sum(1 for _ in walk(tree)) == 20_001
