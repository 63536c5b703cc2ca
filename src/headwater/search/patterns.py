"""Patterns over terms: which terms of a field match ``*data*``, ``d?ta`` or a suffix.

The library can walk its dictionary with a regular expression. Looking at the sorted list of terms that each split
carries takes a tenth of that, so patterns become sets of terms; only a pattern that matches a great many is given to
the library as an expression. A list may hold terms of rows that are not alive any more: they match nothing.

Letters in the middle of a term are looked for in all terms at once, joined by a byte that UTF-8 does not have: about a
millisecond for 200,000 terms. Where the field has trigrams, those of the terms are looked up instead; their table is
made when it is first needed.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.search.language import ANY, Marker, Pattern

__all__ = ["TermList", "matching", "pattern_regex", "terms_like"]

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~/\s]")


Integers = np.ndarray[Any, np.dtype[np.int64]]
_GRAM = 3
_SEPARATOR = 0xFF
_PATTERNS, _MOST_REMEMBERED = 64, 1_000


class TermList:
    """The sorted terms of one field of one split."""

    def __init__(self, terms: pa.Array) -> None:
        assert pa.types.is_large_string(terms.type) and not terms.null_count
        self.terms = terms
        self._found: OrderedDict[tuple[Pattern, bool], pa.Array] = OrderedDict()

    def matching(self, pattern: Pattern, *, grams: bool) -> pa.Array:
        """`terms_like`, which remembers the last patterns, unless they match very many terms."""
        key = pattern, grams
        found = self._found.get(key)
        if found is None:
            found = terms_like(self, pattern, grams=grams)
            if len(found) <= _MOST_REMEMBERED:
                self._found[key] = found
                with suppress(KeyError):  # another thread was quicker
                    while len(self._found) > _PATTERNS:
                        self._found.popitem(last=False)
        return found

    def to_pylist(self) -> list[str]:
        found: list[str] = self.terms.to_pylist()
        return found

    def __len__(self) -> int:
        return len(self.terms)

    @cached_property
    def _joined(self) -> tuple[bytes, Integers]:
        """The terms with a separator after each, and where each begins."""
        first = self.terms.offset
        _, offsets, data = self.terms.buffers()
        ends = np.frombuffer(offsets, np.int64)[first : first + len(self.terms) + 1]
        letters = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
        joined = np.insert(letters, ends[1:] - ends[0], _SEPARATOR)
        return joined.tobytes(), ends[:-1] - ends[0] + np.arange(len(self.terms))

    @cached_property
    def _grams(self) -> tuple[Integers, Integers]:
        """Every three bytes of every term, sorted, and the numbers of the terms that they are in."""
        joined, begins = self._joined
        letters = np.frombuffer(joined, np.uint8).astype(np.int64)
        codes = (letters[:-2] << 16) | (letters[1:-1] << 8) | letters[2:]
        whole = np.all([letters[n : len(letters) - 2 + n] != _SEPARATOR for n in range(_GRAM)], axis=0)
        codes, places = codes[whole], np.flatnonzero(whole)
        order = np.argsort(codes, kind="stable")
        return codes[order], (np.searchsorted(begins, places, side="right") - 1)[order]

    def containing(self, literal: str, *, grams: bool = False) -> pa.Array:
        """The terms that have a literal in them; ``grams`` looks its trigrams up."""
        needle = literal.encode()
        if len(needle) < _GRAM:  # it is in so many that looking at each one is quicker
            return self.terms.filter(pc.match_substring(self.terms, literal))
        if grams:
            candidates = self.terms.take(pa.array(self._candidates(needle)))
            return candidates.filter(pc.match_substring(candidates, literal))
        joined, begins = self._joined
        places = np.fromiter((found.start() for found in re.finditer(re.escape(needle), joined)), np.int64)
        return self.terms.take(pa.array(np.unique(np.searchsorted(begins, places, side="right") - 1)))

    def _candidates(self, needle: bytes) -> Integers:
        """The terms with the rarest three bytes of a needle."""
        codes, numbers = self._grams
        wanted = [int.from_bytes(needle[n : n + _GRAM]) for n in range(len(needle) - _GRAM + 1)]
        low, high = np.searchsorted(codes, wanted, side="left"), np.searchsorted(codes, wanted, side="right")
        rarest = int(np.argmin(high - low))
        return np.unique(numbers[low[rarest] : high[rarest]])


def matching(lists: Sequence[TermList], pattern: Pattern, *, grams: bool = False) -> set[str]:
    """The terms that match a pattern as a whole; ``grams``: see `TermList.containing`."""
    found: set[str] = set()
    for one in lists:
        found.update(one.matching(pattern, grams=grams).to_pylist())
    return found


def terms_like(listed: TermList, pattern: Pattern, *, grams: bool = False) -> pa.Array:
    """The terms of one sorted list that match a pattern."""
    terms = listed.terms
    literals = [part for part in pattern if isinstance(part, str)]
    if isinstance(pattern[0], str):
        terms = _beginning(terms, pattern[0])
        if len(pattern) == 2 and pattern[1] is ANY:
            return terms
    elif literals:
        terms = listed.containing(max(literals, key=len), grams=grams)
    if len(pattern) == 3 and pattern[0] is ANY and pattern[2] is ANY and literals:
        return terms
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
        ("(?s:.*)" if part is ANY else "(?s:.)") if isinstance(part, Marker) else _SPECIAL.sub(r"\\\g<0>", part)
        for part in pattern
    )
