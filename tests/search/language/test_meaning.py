"""Operators mean what they should: boolean algebra is compared with Python's, rows of marked clauses with Lucene's rule."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from headwater.search.language import And, Boost, Everything, Node, Not, Occurs, Or, Term, parse

_WORDS = "abcd"
_EVERY_ROW = [set(some) for n in range(len(_WORDS) + 1) for some in combinations(_WORDS, n)]


def _matches(node: Node, row: Collection[str]) -> bool:
    match node:
        case Term():
            return node.text in row
        case Everything():
            return True
        case And():
            return all(_matches(child, row) for child in node.children)
        case Or():
            return any(_matches(child, row) for child in node.children)
        case Not():
            return not _matches(node.child, row)
        case Boost():
            return _matches(node.child, row)
        case Occurs():
            needed = all(_matches(child, row) for child in node.must)
            some = node.must or not node.should or any(_matches(child, row) for child in node.should)
            return bool(needed and some) and not any(_matches(child, row) for child in node.must_not)
        case _:
            raise AssertionError(node)


_BOOLEAN: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(_WORDS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " OR ", "&&", " || "]), inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"NOT {text}"),
        inner.map(lambda text: f"({text})^2"),
    ),
    max_leaves=8,
)


@given(st.lists(_BOOLEAN, min_size=1, max_size=10))
def test_explicit_operators_are_those_of_python(texts: list[str]) -> None:
    for text in texts:
        python = re.sub(r"\^2", "", text)
        for ours, theirs in [("AND", " and "), ("&&", " and "), ("OR", " or "), ("||", " or "), ("NOT", " not ")]:
            python = python.replace(ours, theirs)
        for default in ("or", "and"):
            node = parse(text, default=default)
            for row in _EVERY_ROW:
                expected = eval(python, {word: word in row for word in _WORDS})
                assert _matches(node, row) == expected, text


_MARKED = st.lists(
    st.tuples(st.sampled_from(["", "+", "-", "!", "NOT "]), st.sampled_from(_WORDS)), min_size=1, max_size=5
)


@given(st.lists(_MARKED, min_size=1, max_size=10))
def test_clauses_side_by_side_follow_lucene(rows: list[list[tuple[str, str]]]) -> None:
    for clauses in rows:
        text = " ".join(mark + word for mark, word in clauses)
        must = {word for mark, word in clauses if mark == "+"}
        should = {word for mark, word in clauses if not mark}
        must_not = {word for mark, word in clauses if mark in ("-", "!", "NOT ")}
        for row in _EVERY_ROW:
            either = must <= row and not must_not & row and bool(must or not should or should & row)
            both = (must | should) <= row and not must_not & row
            assert _matches(parse(text), row) == either, text
            assert _matches(parse(text, default="and"), row) == both, text
            if "+" in text or "-" in text:
                assert _matches(parse(text.replace(" ", " OR ").replace("NOT OR", "NOT")), row) == either, text
