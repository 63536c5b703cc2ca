"""What may follow a leaf or a group directly: ``~2`` for a distance, ``*`` for a prefix, ``^2.5`` for a boost.

They are written in any order. A word takes a distance of at most 2, which is also what a bare ``~`` means, and then a
``*``; a phrase takes a slop and a ``*``; everything takes a boost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from headwater.search.language.source import Source
from headwater.search.language.tree import MAX_BOOST, MAX_DISTANCE

__all__ = ["Subject", "Suffixes", "read_suffixes"]

_SUFFIXES = re.compile(r'[~^*](?:[^\s()"&|]|&(?!&)|\|(?!\|))*+')
_SUFFIX = re.compile(r"([~^*])([^~^*]*+)")
_WHOLE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")


class Subject(Enum):
    """What a suffix follows, as it is called in messages."""

    WORD = "a word"
    PHRASE = "a phrase"
    PATTERN = "a pattern"
    REGEX = "a regular expression"
    RANGE = "a range"
    LIST = "a list of values"
    GROUP = "a group"


@dataclass(slots=True)
class Suffixes:
    """What the suffixes said; None and False where they said nothing."""

    distance: int | None = None
    prefix: bool = False
    boost: float | None = None
    end: int = 0


def read_suffixes(source: Source, at: int, subject: Subject) -> Suffixes:
    """The suffixes that follow at ``at``; those that do not fit are refused one by one."""
    said = Suffixes(end=at)
    found = _SUFFIXES.match(source.text, at)
    if found is None:
        return said
    said.end = found.end()
    for suffix in _SUFFIX.finditer(source.text, at, said.end):
        symbol, argument = suffix.groups()
        start, end = suffix.span()
        if symbol == "^":
            _read_boost(source, start, end, argument, said)
        elif symbol == "~":
            _read_distance(source, start, end, argument, said, subject)
        else:
            _read_prefix(source, start, end, argument, said, subject)
    return said


def _read_boost(source: Source, start: int, end: int, argument: str, said: Suffixes) -> None:
    if said.boost is not None:
        source.refuse(start, end, "it has two boosts", "keep one of them: `word^2`")
    elif not _NUMBER.fullmatch(argument) or not (factor := float(argument)) <= MAX_BOOST:
        why = f"`^{argument}` is not a boost" if argument else "`^` has no number after it"
        hint = f"write a number from 0 to {MAX_BOOST:,.0f}: `word^2.5`; to search for the character itself, write `\\^`"
        source.refuse(start, end, why, hint)
    else:
        said.boost = factor


def _read_distance(source: Source, start: int, end: int, argument: str, said: Suffixes, subject: Subject) -> None:
    whole = int(argument) if _WHOLE.fullmatch(argument) else None
    if subject not in (Subject.WORD, Subject.PHRASE):
        hint = (
            '`~` goes after a word or a phrase: `word~1`, `"two words"~3`; to search for the character '
            "itself, write `\\~`"
        )
        source.refuse(start, end, f"{subject.value} takes no `~`", hint)
    elif said.distance is not None:
        source.refuse(start, end, "it has two distances", "keep one of them: `word~1`")
    elif subject is Subject.PHRASE:
        if whole is None:
            hint = 'write how far words may be moved: `"two words"~3`'
            source.refuse(start, end, f"`~{argument}` is not a distance for a phrase", hint)
        said.distance = whole
    elif not argument:
        said.distance = MAX_DISTANCE
    elif whole is None or whole > MAX_DISTANCE:
        hint = "write `word~1` or `word~2`; `word*` finds every word that begins so"
        why = (
            f"`~{argument}` is not a distance"
            if whole is None
            else f"a distance of {whole} is more than {MAX_DISTANCE}"
        )
        source.refuse(start, end, why, hint)
    else:
        said.distance = whole


def _read_prefix(source: Source, start: int, end: int, argument: str, said: Suffixes, subject: Subject) -> None:
    if argument:
        source.refuse(start, end, f"`{argument[:40]}` follows `*` directly", 'put a space between them: `"a b"* c`')
    elif subject is not Subject.PHRASE and (subject is not Subject.WORD or said.distance is None):
        hint = (
            '`*` goes in or after a word, or after a phrase: `da*`, `"two wor"*`; to search for the character '
            "itself, write `\\*`"
        )
        source.refuse(start, end, f"{subject.value} takes no `*` here", hint)
    elif said.prefix:
        source.refuse(start, end, "it has two `*`", 'keep one of them: `"two wor"*`')
    else:
        said.prefix = True
