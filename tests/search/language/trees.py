"""Strategies: any tree of a query, and strings that look like queries."""

from __future__ import annotations

from hypothesis import strategies as st

from headwater.search.language import (
    ANY,
    ONE,
    And,
    Boost,
    Everything,
    Exists,
    Fuzzy,
    Node,
    Not,
    Occurs,
    OneOf,
    Or,
    Pattern,
    Phrase,
    Range,
    Regex,
    Term,
    Wildcard,
    join_path,
)

SPECIAL = "+-!(){}[]^\"~*?:\\/&|<>='`., \t\n\u3000_"
_CHARACTERS = st.sampled_from(SPECIAL) | st.sampled_from("abAZ09é東🎉\0") | st.characters(exclude_categories=["Cs"])
_RESERVED = st.sampled_from(["AND", "OR", "NOT", "IN", "TO", "_exists_", "&&", "||", "*", "-5", "a`b", "`", "'", "and"])
TEXTS = st.text(_CHARACTERS, max_size=6) | _RESERVED
WORDS = TEXTS.filter(bool)
FIELDS = st.lists(TEXTS, min_size=1, max_size=3).map(join_path).filter(bool)
_MAYBE_FIELDS = st.none() | FIELDS


def _pattern(parts: list[str]) -> Pattern:
    joined: list[str | object] = []
    for part in parts:
        marker = {"*": ANY, "?": ONE}.get(part)
        if marker is None and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif not (marker is ANY and joined and joined[-1] is ANY):
            joined.append(marker or part)
    return tuple(joined)  # type: ignore[arg-type]


_PATTERNS = (
    st.lists(st.sampled_from("*?") | WORDS.filter(lambda w: w not in "*?"), min_size=1, max_size=4)
    .map(_pattern)
    .filter(lambda parts: parts != (ANY,) and (ANY in parts or ONE in parts))
)
_REGEXES = st.lists(
    st.sampled_from(["a", ".*", "/", "\\\\", "\\d", "[^/]", "\\ ", '"', "(a|b)", "\n"]), min_size=1, max_size=5
).map("".join)
_BOUNDS = st.none() | TEXTS


def _range(field: str | None, lower: str | None, upper: str | None, low: bool, high: bool) -> Range:
    return Range(field, lower, upper, low and lower is not None, high and upper is not None)


_LEAVES: st.SearchStrategy[Node] = st.one_of(
    st.builds(Term, _MAYBE_FIELDS, WORDS),
    st.builds(Phrase, _MAYBE_FIELDS, TEXTS, st.integers(0, 999_999_999), st.booleans()),
    st.builds(Wildcard, _MAYBE_FIELDS, _PATTERNS),
    st.builds(Fuzzy, _MAYBE_FIELDS, WORDS, st.integers(0, 2), st.booleans()),
    st.builds(Regex, _MAYBE_FIELDS, _REGEXES),
    st.tuples(_MAYBE_FIELDS, _BOUNDS, _BOUNDS, st.booleans(), st.booleans())
    .filter(lambda r: r[1] is not None or r[2] is not None)
    .map(lambda r: _range(*r)),
    st.builds(OneOf, _MAYBE_FIELDS, st.lists(TEXTS, min_size=1, max_size=4).map(tuple)),
    st.builds(Exists, FIELDS),
    st.builds(Everything),
)


# Built by hand: Hypothesis spends most of its time on describing `st.recursive` over so many leaves.
@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> Node:
    """Any tree of at most this many levels above its leaves."""
    kind = draw(st.sampled_from(["leaf", "leaf", "and", "or", "not", "boost", "occurs"])) if depth else "leaf"

    def several(least: int, most: int) -> tuple[Node, ...]:
        return tuple(draw(trees(depth - 1)) for _ in range(draw(st.integers(least, most))))

    match kind:
        case "and":
            return And(several(2, 3))
        case "or":
            return Or(several(2, 3))
        case "not":
            return Not(draw(trees(depth - 1)))
        case "boost":
            return Boost(draw(trees(depth - 1)), draw(st.floats(0, 1_000_000)))
        case "occurs":
            must, must_not = several(0, 2), several(0, 2)
            least = 1 if len(must) + len(must_not) == 1 else 0
            if not must and not must_not:
                must, least = several(1, 2), 1
            return Occurs(must, several(least, 2), must_not)
        case _:
            return draw(_LEAVES)


_SCRAPS = (
    *SPECIAL,
    *("a", "b", "title:", "attrs.x:", "AND ", " OR ", "NOT ", "&&", "||", "IN [", " TO ", "~1", "~9", "^2", "^", "*:*"),
    *("_exists_:", '"', "'", "/", "(", ")", "[", "]", "{", "}", ">=", "-5", "\\", "`", " ", "+a", "-b", ")^2", '"*'),
)
QUERIES = st.lists(st.sampled_from(_SCRAPS), max_size=40).map("".join) | st.text(max_size=40)
"""Strings of any characters, and of the pieces that queries are made of, in any order."""
