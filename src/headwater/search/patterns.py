"""Patterns over terms: which terms of a field match ``*data*``, ``d?ta`` or a suffix.

The library can walk its dictionary with a regular expression. Looking at the sorted list of terms that each split carries
takes a quarter of that, so patterns become sets of terms; only a pattern that matches a great many is given to the library
as an expression. A list may hold terms of rows that are not alive any more: they match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headwater.search.language import ANY, Marker, Pattern

__all__ = ["matching", "pattern_regex", "terms_like"]

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~/\s]")


def matching(lists: Sequence[pa.Array], pattern: Pattern) -> set[str]:
    """The terms that match a pattern as a whole."""
    found: set[str] = set()
    for terms in lists:
        found.update(terms_like(terms, pattern).to_pylist())
    return found


def terms_like(terms: pa.Array, pattern: Pattern) -> pa.Array:
    """The terms of one sorted list that match a pattern."""
    if isinstance(pattern[0], str):
        terms = _beginning(terms, pattern[0])
        if len(pattern) == 2 and pattern[1] is ANY:
            return terms
    literals = [part for part in pattern if isinstance(part, str)]
    if len(pattern) == 3 and pattern[0] is ANY and pattern[2] is ANY and literals:
        return terms.filter(pc.match_substring(terms, literals[0]))
    if len(pattern) == 2 and pattern[0] is ANY and literals:
        return terms.filter(pc.ends_with(terms, literals[0]))
    for literal in literals:
        terms = terms.filter(pc.match_substring(terms, literal))
    compiled = re.compile(pattern_regex(pattern), re.DOTALL)
    return pa.array([term for term in terms.to_pylist() if compiled.fullmatch(term)], pa.large_string())


def _beginning(terms: pa.Array, prefix: str) -> pa.Array:
    """The stretch of a sorted list that begins with a prefix; the order is that of bytes, and so of code points."""
    low = _bisect(terms, prefix)
    high = _bisect(terms, prefix, after=True)
    return terms.slice(low, high - low)


def _bisect(terms: pa.Array, prefix: str, *, after: bool = False) -> int:
    low, high = 0, len(terms)
    while low < high:
        middle = (low + high) // 2
        term = terms[middle].as_py()
        if term < prefix or (after and term.startswith(prefix)):
            low = middle + 1
        else:
            high = middle
    return low


def pattern_regex(pattern: Pattern) -> str:
    """A pattern as a regular expression that has to match as a whole, for Python and for the library alike."""
    return "".join(
        (".*" if part is ANY else ".") if isinstance(part, Marker) else _SPECIAL.sub(r"\\\g<0>", part)
        for part in pattern
    )
