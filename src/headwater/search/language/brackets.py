"""Leaves in brackets: ranges ``[a TO b]``, ``{a TO b}``, and lists ``IN [a b c]``; and comparisons, which are ranges
too.

Their values are plain strings, bare or in quotes: what they mean is up to the type of the field. A bare value ends at
a blank or a bracket, so dates, timestamps, negative numbers and addresses need no quotes.
"""

from __future__ import annotations

import re

from headwater.search.language.source import VALUE, Source, unescape
from headwater.search.language.tree import Exists, OneOf, Range

__all__ = ["LIST", "read_comparison", "read_list", "read_range"]

LIST = re.compile(r"IN\s*+\[")
_BOUND = re.compile(r'(?:[^\s\\\[\]{}()"]|\\.)++', re.DOTALL)
_ITEM = re.compile(r'(?:[^\s\\\[\],"]|\\.)++', re.DOTALL)
_BETWEEN = re.compile(r"[\s,]*+")
_COMPARISON = re.compile(r"[<>]=?")
# What is left out of a range that cannot be read: up to its closing bracket, if no other bracket comes before.
_REST = re.compile(r'[^\[\]{}()"]*+[\]}]')

_RANGE_HINT = (
    "write `[a TO b]` with `TO` in capitals, `{a TO b}` without its ends, or `[a TO *]`; to search for "
    "the character itself, write `\\[`"
)
_LIST_HINT = 'write the values in brackets: `field: IN [a b "c d"]`'


def read_range(source: Source, at: int, field: str | None) -> tuple[Range | Exists | None, int]:
    """The range that the bracket at ``at`` opens, and the offset after it."""
    lower, place = _read_bound(source, source.skip_blanks(at + 1))
    if lower is None:
        return _no_range(source, at, place, "the range has no lower end")
    place = source.skip_blanks(place)
    if source.text[place : place + 2] != "TO" or not source.char(place + 2).isspace():
        return _no_range(source, at, place, "the range has no `TO` after its lower end")
    upper, place = _read_bound(source, source.skip_blanks(place + 2))
    if upper is None:
        return _no_range(source, at, place, "the range has no upper end")
    place = source.skip_blanks(place)
    closing = source.char(place)
    if closing not in ("]", "}"):
        return _no_range(source, at, place, "the range is never closed")
    low, high = lower[0], upper[0]
    if low is None and high is None:
        if field is not None:
            return Exists(field, at=at), place + 1
        hint = "name it: `field:[* TO *]`; `*` alone finds every row"
        return _no_range(source, at, place, "a range that is open at both ends needs a field", hint)
    include_lower = source.text[at] == "[" and low is not None
    include_upper = closing == "]" and high is not None
    return Range(field, low, high, include_lower, include_upper, at=at), place + 1


def _read_bound(source: Source, at: int) -> tuple[tuple[str | None] | None, int]:
    """An end of a range (in a tuple, since an open one is None), or None where there is no end."""
    if source.char(at) in ('"', "'") and (quoted := source.enclosed(at)):
        return (unescape(quoted.group(1)),), quoted.end()
    found = _BOUND.match(source.text, at)
    if found is None or found.group() == "TO":
        return None, at
    return (None if found.group() == "*" else unescape(found.group()),), found.end()


def _no_range(source: Source, start: int, place: int, why: str, hint: str = _RANGE_HINT) -> tuple[None, int]:
    rest = _REST.match(source.text, place)
    end = max(rest.end() if rest else place, start + 1)
    source.refuse(start, end, why, hint, caret=place)
    return None, end


def read_comparison(source: Source, at: int, field: str) -> tuple[Range | None, int]:
    """The range that ``>``, ``>=``, ``<`` or ``<=`` at ``at`` stands for."""
    sign = _COMPARISON.match(source.text, at)
    assert sign is not None
    place = source.skip_blanks(sign.end())
    if source.char(place) in ('"', "'") and (quoted := source.enclosed(place)):
        value, place = unescape(quoted.group(1)), quoted.end()
    elif (found := VALUE.match(source.text, place)) and found.group() not in ("*", "AND", "OR", "NOT"):
        value, place = unescape(found.group()), found.end()
    else:
        hint = f"add one: `field:{sign.group()}5`; to search for the character itself, write `\\{sign.group()[0]}`"
        source.refuse(at, sign.end(), f"`{sign.group()}` has no value after it", hint)
        return None, sign.end()
    inclusive = sign.group().endswith("=")
    if sign.group()[0] == ">":
        return Range(field, value, None, inclusive, False, at=at), place
    return Range(field, None, value, False, inclusive, at=at), place


def read_list(source: Source, at: int, field: str | None) -> tuple[OneOf | None, int]:
    """The list of values that begins with the ``IN`` at ``at``."""
    opening = LIST.match(source.text, at)
    assert opening is not None
    values: list[str] = []
    place = _skip(source, opening.end())
    while (char := source.char(place)) != "]":
        if not char:
            source.refuse(at, opening.end(), "the list that begins here is never closed", _LIST_HINT)
            break
        if char in ('"', "'") and (quoted := source.enclosed(place)):
            values.append(unescape(quoted.group(1)))
            place = quoted.end()
        elif char != '"' and (found := _ITEM.match(source.text, place)):
            values.append(unescape(found.group()))
            place = found.end()
        else:
            source.refuse(place, place + 1, f"`{char}` cannot be used in a list of values", _LIST_HINT)
            place += 1
        place = _skip(source, place)
    end = min(place + 1, len(source.text))
    if not values:
        source.refuse(at, end, "the list holds no values", _LIST_HINT)
        return None, end
    return OneOf(field, tuple(values), at=at), end


def _skip(source: Source, at: int) -> int:
    between = _BETWEEN.match(source.text, at)
    assert between is not None
    return between.end()
