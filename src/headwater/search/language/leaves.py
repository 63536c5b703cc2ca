"""Leaves: words, patterns, phrases, regular expressions, and what is in brackets.

`read_leaf` is called where a clause begins (``named=False``) or after the colon of a field (``named=True``). After
a colon a word may hold colons itself and may be a negative number; operators and marks have no meaning there.
"""

from __future__ import annotations

import re

from headwater.search.language.brackets import LIST, read_comparison, read_list, read_range
from headwater.search.language.fields import read_name
from headwater.search.language.source import VALUE, WORD, Source, unescape
from headwater.search.language.suffixes import Subject, Suffixes, read_suffixes
from headwater.search.language.tree import (
    ANY,
    Boost,
    Everything,
    Exists,
    Fuzzy,
    Leaf,
    Marker,
    Pattern,
    Phrase,
    Regex,
    Term,
    Wildcard,
)

__all__ = ["OPERATORS", "read_everything", "read_exists", "read_leaf"]

OPERATORS = ("AND", "OR", "NOT")

_PIECE = re.compile(r"\\(.)|([*?])|([^\\*?]++)", re.DOTALL)
_EVERYTHING = re.compile(r"\*:\*(?=[\s)^~]|&&|\|\||\Z)")
_AFTER_REGEX = re.compile(r"[\s)^~]|&&|\|\||\Z")
_SIGNED = re.compile(r"[+-]\.?[0-9]")
_SET = re.compile(r"IN\s*+\(")
_STRAY = {
    "]": (
        "the bracket closes nothing",
        "a range is written `[a TO b]`; to search for the character itself, write `\\]`",
    ),
    "}": (
        "the bracket closes nothing",
        "a range is written `{a TO b}`; to search for the character itself, write `\\}`",
    ),
    ":": (
        "the colon has no field before it",
        "put a name directly before it: `title:word`; to search for the character itself, write `\\:`",
    ),
    "^": (
        "`^` has no clause before it",
        "put it directly after one: `word^2`; to search for the character itself, write `\\^`",
    ),
    "~": (
        "`~` has no word before it",
        "put it directly after one: `word~1`; to search for the character itself, write `\\~`",
    ),
    "\\": ("the backslash at the end escapes nothing", "to search for the character itself, write `\\\\`"),
}

Found = tuple[Leaf | Boost | None, int]


def read_leaf(source: Source, at: int, field: str | None, *, named: bool) -> Found:
    """The leaf at ``at`` and the offset after it; None where nothing could be read there."""
    char = source.char(at)
    if char in ('"', "'"):
        return _read_phrase(source, at, field, named=named)
    if char == "/":
        return _read_regex(source, at, field, named=named)
    if char in ("[", "{"):
        ranged, end = read_range(source, at, field)
        return _boosted(source, ranged, end, Subject.RANGE)
    if char in ("<", ">"):
        if field is not None:
            compared, end = read_comparison(source, at, field)
            return _boosted(source, compared, end, Subject.RANGE)
        hint = f"name it: `field:{char}5`; to search for the character itself, write `\\{char}`"
        source.refuse(at, at + 1, "a comparison needs a field", hint)
    if LIST.match(source.text, at):
        listed, end = read_list(source, at, field)
        return _boosted(source, listed, end, Subject.LIST)
    return _read_word(source, at, field, named=named)


def read_exists(source: Source, at: int, start: int) -> Found:
    """The field whose name is at ``at``, after ``_exists_:``."""
    path, end = read_name(source, at)
    if path is None:
        if end == at:
            source.refuse(start, at, "`_exists_:` has no field after it", "name one: `_exists_:title`")
        return None, end
    return _boosted(source, Exists(path, at=start), end, Subject.PATTERN)


def read_everything(source: Source, at: int) -> Found:
    """What ``*:`` at ``at`` begins: ``*:*``, and nothing else."""
    if whole := _EVERYTHING.match(source.text, at):
        return _boosted(source, Everything(at=at), whole.end(), Subject.PATTERN)
    hint = "name one field: `title:word`; without a field, the default ones are searched; `*:*` is every row"
    source.refuse(at, at + 2, "`*` is no field", hint)
    return None, at + 2


def _boosted(source: Source, leaf: Leaf | None, end: int, subject: Subject) -> Found:
    said = read_suffixes(source, end, subject)
    return _with_boost(leaf, said), said.end


def _with_boost(leaf: Leaf | None, said: Suffixes) -> Leaf | Boost | None:
    return leaf if leaf is None or said.boost is None else Boost(leaf, said.boost)


def _read_phrase(source: Source, at: int, field: str | None, *, named: bool) -> Found:
    quoted = source.enclosed(at)
    if quoted is None:
        quote = source.text[at]
        hint = f"close it, or write `\\{quote}` for the character itself"
        source.refuse(at, at + 1, "the quote that opens here is never closed", hint)
        if quote == "'":
            return _read_word(source, at, field, named=named)
        # The words after it are read as if it were not there, the first one in the field that was named.
        return (
            _read_word(source, at + 1, field, named=True)
            if named and VALUE.match(source.text, at + 1)
            else (None, at + 1)
        )
    said = read_suffixes(source, quoted.end(), Subject.PHRASE)
    phrase = Phrase(field, unescape(quoted.group(1)), said.distance or 0, said.prefix, at=at)
    return _with_boost(phrase, said), said.end


def _read_regex(source: Source, at: int, field: str | None, *, named: bool) -> Found:
    hint = 'write `/pattern/` with a space after it; to search for a path, write `\\/usr\\/bin` or `"/usr/bin"`'
    found = source.enclosed(at)
    if found is None:
        source.refuse(at, at + 1, "the slash begins a regular expression that is never closed", hint)
        return _read_word(source, at, field, named=named)
    end = found.end()
    if not _AFTER_REGEX.match(source.text, end):
        source.refuse(at, end, f"`{source.char(end)}` follows a regular expression directly", hint, caret=end)
        return _read_word(source, at, field, named=named)
    if not found.group(1):
        source.refuse(at, end, "the regular expression is empty", hint)
        return None, end
    pattern = re.sub(r"\\(.)", _bare_slash, found.group(1), flags=re.DOTALL)
    return _boosted(source, Regex(field, pattern, at=at), end, Subject.REGEX)


def _bare_slash(escape: re.Match[str]) -> str:
    return "/" if escape.group(1) == "/" else escape.group()


def _read_word(source: Source, at: int, field: str | None, *, named: bool) -> Found:
    if named and source.char(at) in ("+", "-", "!") and not _SIGNED.match(source.text, at):
        mark = source.text[at]
        hint = f"put the mark before the field: `-title:word`; to search for the character itself, write `\\{mark}`"
        source.refuse(at, at + 1, f"`{mark}` after a field is only allowed as the sign of a number", hint)
        at += 1
        if not VALUE.match(source.text, at):
            return None, at
    word = (VALUE if named else WORD).match(source.text, at)
    if word is None:
        return _refuse_stray(source, at)
    raw, end = word.group(), word.end()
    if named:
        _check_value(source, at, raw, end)
    pattern = _pattern(raw)
    if any(isinstance(part, Marker) for part in pattern):
        return _boosted(source, _of_pattern(pattern, at, field), end, Subject.PATTERN)
    said = read_suffixes(source, end, Subject.WORD)
    text = "".join(map(str, pattern))
    leaf = Term(field, text, at=at) if said.distance is None else Fuzzy(field, text, said.distance, said.prefix, at=at)
    return _with_boost(leaf, said), said.end


def _refuse_stray(source: Source, at: int) -> Found:
    # What cannot begin a word: an operator, a closing parenthesis and the end are seen before a leaf is asked for,
    # except after a mark.
    char = source.char(at)
    why, hint = _STRAY.get(
        char, (f"`{char}` cannot be used here", f"to search for the character itself, write `\\{char}`")
    )
    source.refuse(at, at + 1, why, hint)
    return None, at + 1


def _check_value(source: Source, at: int, raw: str, end: int) -> None:
    after = source.char(end)
    if raw.endswith(":") and after in ("(", '"', "[", "{"):
        hint = "a path is written with dots: `attrs.user:word`; for a colon in a value: `\\:`"
        source.refuse(at, end, "a second field follows the first", hint)
    elif _SET.match(source.text, at):
        source.refuse(at, end, "the values of `IN` are not in brackets", 'write `field: IN [a b "c d"]`')


def _pattern(raw: str) -> Pattern:
    """A word as its parts: literals as long as they can be, and markers, of which several ANY in a row are one."""
    parts: list[str | Marker] = []
    literal: list[str] = []
    for escaped, wild, plain in _PIECE.findall(raw):
        if not wild:
            literal.append(escaped or plain)
            continue
        if literal:
            parts.append("".join(literal))
            literal.clear()
        marker = Marker(wild)
        if not (marker is ANY and parts and parts[-1] is ANY):
            parts.append(marker)
    if literal:
        parts.append("".join(literal))
    return tuple(parts)


def _of_pattern(pattern: Pattern, at: int, field: str | None) -> Leaf:
    if pattern != (ANY,):
        return Wildcard(field, pattern, at=at)
    return Everything(at=at) if field is None else Exists(field, at=at)
