"""Terms that match a pattern are those that a look at every term finds, by whichever way they are looked for."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.search import patterns as patterns_module
from headwater.search.language import ANY, ONE, Pattern
from headwater.search.patterns import TermList, matching, pattern_regex

# Few letters, so that needles are found, across terms as well; of one, two and four bytes.
LETTERS = st.text(alphabet="abé😀\n*", max_size=7)
PATTERNS = st.lists(st.one_of(st.sampled_from([ANY, ONE]), LETTERS.filter(bool)), min_size=1, max_size=4).map(tuple)


def listed(terms: set[str]) -> TermList:
    return TermList(pa.array(sorted(terms, key=str.encode), pa.large_string()))


@pytest.mark.parametrize("grams", [False, True])
@given(lists=st.lists(st.sets(LETTERS.filter(bool)), max_size=3), pattern=PATTERNS)
def test_every_way_finds_what_a_look_at_each_term_finds(grams: bool, lists: list[set[str]], pattern: Pattern) -> None:
    compiled = re.compile(pattern_regex(pattern), re.DOTALL)
    expected = {term for terms in lists for term in terms if compiled.fullmatch(term)}
    assert matching([listed(terms) for terms in lists], pattern, grams=grams) == expected


@pytest.mark.parametrize("grams", [False, True])
def test_a_needle_is_not_found_across_two_terms(grams: bool) -> None:
    assert matching([listed({"xab", "cdy"})], (ANY, "abcd", ANY), grams=grams) == set()
    assert matching([listed({"xabcdy", "abcde"})], (ANY, "abcd", ANY), grams=grams) == {"xabcdy", "abcde"}


@pytest.mark.parametrize("grams", [False, True])
def test_a_slice_of_a_list_is_searched_alone(grams: bool) -> None:
    whole = pa.array(["aaaa", "baaab", "caaac", "daaad"], pa.large_string())
    assert TermList(whole.slice(1, 2)).containing("aaa", grams=grams).to_pylist() == ["baaab", "caaac"]


def test_patterns_that_are_remembered_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = listed({f"term{n}" for n in range(3_000)})
    patterns: list[Pattern] = [(ANY, str(n), ANY) for n in range(200)] + [("term", ANY)]
    first = [matching([terms], pattern) for pattern in patterns]
    assert [matching([terms], pattern) for pattern in patterns] == first
    assert len(terms._found) <= 64 and all(len(found) <= 1_000 for found in terms._found.values())
    monkeypatch.setattr(patterns_module, "terms_like", None)
    assert matching([terms], patterns[199]) == first[199], "the last ones are"
