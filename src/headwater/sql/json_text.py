"""JSON as Spark's parser reads it and its generators write it.

Spark reads JSON with Jackson, which takes the first value of a text and does not look at what follows; texts may stand
in single quotes. Python's own decoder knows the same grammar but for those quotes, so it does the work: what it refuses
is written in double quotes and tried again. Numbers are kept as written, objects as pairs, so that nothing is lost
before somebody says what it means.

Written out, whole numbers keep their digits, all others are doubles as Java prints them, and characters beyond U+FFFF
become two escapes wherever Spark writes bytes (and not where it writes characters).

Invariant: a text either has Spark's value, or none (`MALFORMED`), or raises `Failed` where only Jackson would know.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from headwater.sql.java_numbers import java_text
from headwater.sql.udfs import Failed

__all__ = ["MALFORMED", "Number", "Pairs", "double_text", "quoted", "read_json", "sound", "write_json"]

MALFORMED = object()
_BLANKS = " \t\r\n"
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
_INSIDE = re.compile(r'\\.|"', re.DOTALL)
_LONGEST_NUMBER = 1000
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_END = re.compile(r"[-+.\w]*")  # what may be left of a number or a word
_SIGNED_WORDS = re.compile(r"[+-]INF|\+Infinity")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written; ``whole`` if it has neither a point nor an exponent, ``word`` for NaN and Infinity."""

    text: str
    whole: bool = False
    word: bool = False

    @property
    def double(self) -> float:
        return float(self.text)


class Pairs(list[tuple[str, Any]]):
    """An object: its fields in their order, names that occur twice among them."""


class _Word(ValueError):
    pass


def _whole(text: str) -> Number:
    return Number(_short(text), whole=True)


def _short(text: str) -> str:
    if len(text) > _LONGEST_NUMBER:
        raise Failed("a number in JSON has more than 1000 digits")
    return text


def _no_word(text: str) -> Any:
    raise _Word(text)


def _decoder(*, control: bool, words: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=Pairs,
        parse_int=_whole,
        parse_float=lambda text: Number(_short(text)),
        parse_constant=(lambda text: Number(text, word=True)) if words else _no_word,
        strict=not control,
    )


_LOOSE = _decoder(control=True, words=False)
_STRICT = _decoder(control=False, words=True)


def read_json(text: str, *, schema: bool = False) -> Any:
    """The first value of a text, or `MALFORMED`; an empty text is malformed too. ``schema``: by the rules of from_json.

    >>> read_json("{'a': 1} x")
    [('a', Number(text='1', whole=True, word=False))]
    >>> read_json("{a: 1}") is MALFORMED
    True
    """
    start = text.lstrip(_BLANKS)
    found = _decoded(start, schema=schema, final="'" not in start)
    if found is MALFORMED and "'" in start:
        found = _decoded(_QUOTED.sub(_in_double_quotes, start), schema=schema, final=True)
    if found is MALFORMED and schema and _SIGNED_WORDS.search(start):
        raise Failed("this JSON may hold a signed infinity")
    return found


def _decoded(text: str, *, schema: bool, final: bool) -> Any:
    try:
        value, end = (_STRICT if schema else _LOOSE).raw_decode(text)
    except RecursionError:
        raise Failed("JSON is nested too deep") from None
    except Failed:
        raise
    except json.JSONDecodeError as error:
        if schema and final and text[:1] in ("{", "[") and not _cut_off(text, error):
            # Spark goes on behind the fault, and what it then finds depends on where its parser stood.
            raise Failed("JSON is broken in the middle: from_json may find some of its fields in Spark") from None
        return MALFORMED
    except _Word:
        return MALFORMED
    after = text[end : end + 1]
    if isinstance(value, Number) and after and after not in _BLANKS:
        return MALFORMED
    if (value is None or isinstance(value, bool)) and after and (after.isalnum() or after in "_$" or after > "\x7f"):
        return MALFORMED
    return value


def _cut_off(text: str, error: json.JSONDecodeError) -> bool:
    """Does the text just end, in the outermost object or array? Then there is nothing to go on with."""
    ends = error.msg.startswith("Unterminated") or _END.fullmatch(text, error.pos) is not None
    bare = _QUOTED.sub("", text[: error.pos])
    return ends and sum(map(bare.count, "{[")) - sum(map(bare.count, "}]")) == 1


def _in_double_quotes(match: re.Match[str]) -> str:
    quoted = match[0]
    single = quoted[0] == "'"

    def changed(part: re.Match[str]) -> str:
        if part[0] == "\\'":
            return "'"
        return '\\"' if part[0] == '"' and single else part[0]

    return f'"{_INSIDE.sub(changed, quoted[1:-1])}"'


def write_json(value: Any, *, astral: bool) -> str:
    """The text of a value that was read; ``astral``: characters beyond U+FFFF as they are.

    >>> write_json(read_json('{"a": [1.50, 1e10, "x\\u0001"]}'), astral=False)
    '{"a":[1.5,1.0E10,"x\\\\u0001"]}'
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return number_text(value)
    if isinstance(value, str):
        return quoted(value, astral=astral)
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{quoted(k, astral=astral)}:{write_json(v, astral=astral)}" for k, v in value) + "}"
    return "[" + ",".join(write_json(v, astral=astral) for v in value) + "]"


def number_text(number: Number) -> str:
    """A number as Jackson copies it."""
    if number.whole:
        return str(int(number.text))
    return double_text(number.double)


def double_text(value: float, *, single: bool = False) -> str:
    """A double, or a float, in JSON; those that are no numbers stand in quotes."""
    text = java_text(value, single=single)
    if text is None:
        raise Failed("versions of Java print this number in different ways")
    return f'"{text}"' if text.lstrip("-")[0] in "NI" else text


def quoted(text: str, *, astral: bool) -> str:
    """A text between double quotes, with Jackson's escapes."""

    def escaped(match: re.Match[str]) -> str:
        char = match[0]
        return _ESCAPES.get(char) or f"\\u{ord(char):04X}"

    shown = _ESCAPED.sub(escaped, text)
    if not astral:
        shown = _ASTRAL.sub(_surrogates, shown)
    return f'"{sound(shown)}"'


def _surrogates(match: re.Match[str]) -> str:
    code = ord(match[0]) - 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"


def sound(text: str) -> str:
    """The text, if all its characters are; half a character has no UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Failed("JSON holds half a character") from None
    return text
