"""Whatever is typed, the answer is a tree or a typed error; leniently it is always a tree, and says what was left out."""

from __future__ import annotations

from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.language.trees import QUERIES

from headwater.base.errors import SearchQueryError
from headwater.search.language import leaves, parse, parse_leniently

_MANY = settings(max_examples=max(500, settings.default.max_examples if settings.default else 0))
_DEFAULTS = st.sampled_from(["or", "and"])


@_MANY
@given(QUERIES, _DEFAULTS)
def test_lenient_reads_everything_and_as_strict_does(text: str, default: Literal["or", "and"]) -> None:
    node, ignored = parse_leniently(text, default=default)
    try:
        strict = parse(text, default=default)
    except SearchQueryError as error:
        assert error.code == "E1801" and error.hint
        assert error.position is None or 0 <= error.position <= len(text)
        assert ignored or not text.strip(), "what strict refuses is reported"
    else:
        assert (strict, ()) == (node, ignored)
        assert [leaf.at for leaf in leaves(strict)] == [leaf.at for leaf in leaves(node)]
    done = 0
    for one in ignored:
        assert one.text and one.reason
        assert one.at >= done, "in order, and each part once"
        done = one.at + len(one.text)
        assert text[one.at : done] == one.text
    assert all(0 <= leaf.at <= len(text) for leaf in leaves(node))


@given(st.text(st.characters(), max_size=20))
def test_halves_of_surrogate_pairs_are_refused(text: str) -> None:
    text = f"{text}\ud800a"
    _, ignored = parse_leniently(text)
    assert any("\ud800" in one.text for one in ignored)
    try:
        parse(text)
    except SearchQueryError as error:
        assert "surrogate" in error.message
    else:
        raise AssertionError(text)
