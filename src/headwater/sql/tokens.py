"""Tokens: the words, names, texts and marks of a SQL text, with their places.

Statements are read by hand, word by word, so that each knows where it stands and says what it expected. The rules of
quoting are those of `lexis`, which everything else reads by, so that no text can end for one reader where it goes on
for another.

Kinds: ``word`` (keyword or bare name), ``name`` (in backticks), ``text`` (in quotes), ``number``, ``mark`` (one
character), ``parameter`` (``:name``) and ``question`` (``?``; in a row pattern it is a mark).
Comments and blanks lie between tokens.

Invariant: tokens are in order and do not overlap, and what lies between them is blank or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from headwater.base.errors import ExpressionError
from headwater.sql.lexis import closing_quote, gap_length, row_patterns, text_prefix, text_value

__all__ = ["Token", "split", "tokenize", "without_comments"]

Kind = Literal["word", "name", "text", "number", "mark", "parameter", "question"]

_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\w*", re.ASCII)
_PARAMETER = re.compile(r":([A-Za-z_][A-Za-z0-9_]*)")
_STRUCT = re.compile(r"struct", re.IGNORECASE)


@dataclass(frozen=True)
class Token:
    """A piece of ``source`` from ``start`` to ``end``."""

    kind: Kind
    source: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]

    @cached_property
    def word(self) -> str:
        """A word in capitals, to be compared with keywords; of anything else its text, which is none."""
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def value(self) -> str | bytes:
        """The name in backticks, or the text in quotes, that is meant."""
        if self.kind == "name":
            return self.text[1:-1].replace("``", "`")
        if self.kind == "text":
            prefix = self.text[0].lower() if self.text[0] in "rRxX" else ""
            return text_value(self.source, self.start + len(prefix), self.end - 1, prefix=prefix)
        return self.text


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of ``text``.

    >>> [(t.kind, t.text) for t in tokenize("DELETE FROM `a b` WHERE x = :p -- all")][2:]
    [('name', '`a b`'), ('word', 'WHERE'), ('word', 'x'), ('mark', '='), ('parameter', ':p')]
    """
    at, angles, before = 0, 0, ""
    patterns = row_patterns(text) if "?" in text else []
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
            continue
        try:
            if char != ";" and (gap := gap_length(text, at)):
                at += gap
                continue
            token = _token(text, at, in_struct=angles > 0)
        except ExpressionError as error:
            why = f"the {'comment' if char == '/' else 'quote'} that opens here is never closed"
            raise ExpressionError.statement(text, why, error.position, "close it, or remove it") from None
        if token.kind == "question" and any(start <= at < end for start, end in patterns):
            token = Token("mark", text, at, token.end)
        # Inside STRUCT<a: INT> a colon is no parameter.
        if angles or (token.text == "<" and _STRUCT.fullmatch(before)):
            angles += {"<": 1, ">": -1}.get(token.text, 0)
        yield token
        at, before = token.end, token.text


def _token(text: str, at: int, *, in_struct: bool) -> Token:
    char = text[at]
    if char in "'\"`":
        return Token("name" if char == "`" else "text", text, at, closing_quote(text, at, raw=False) + 1)
    if text[at + 1 : at + 2] in ("'", '"') and (prefix := text_prefix(text, at + 1)):
        return Token("text", text, at, closing_quote(text, at + 1, raw=bool(prefix)) + 1)
    if char == ":" and not in_struct and (found := _PARAMETER.match(text, at)) and text[at - 1 : at] != ":":
        return Token("parameter", text, at, found.end())
    if char == "?":
        return Token("question", text, at, at + 1)
    kinds: tuple[tuple[Kind, re.Pattern[str]], ...] = (("number", _NUMBER), ("word", _WORD))
    for kind, pattern in kinds:
        if found := pattern.match(text, at):
            return Token(kind, text, at, found.end())
    return Token("mark", text, at, at + 1)


def without_comments(text: str) -> str:
    """``text`` of the same length, with blanks in the place of comments.

    >>> without_comments("a = 1 /* not 2 */ + 3")
    'a = 1             + 3'
    """
    out, at = [], 0
    for token in tokenize(text):
        out += [_blank(text[at : token.start]), token.text]
        at = token.end
    return "".join([*out, _blank(text[at:])])


def _blank(text: str) -> str:
    return "".join(c if c.isspace() else " " for c in text)


def split(script: str) -> list[tuple[str, int]]:
    """The statements of a script with their places: cut at each ``;`` that stands outside quotes and comments.

    >>> split("SELECT ';'; -- two\\nSELECT 2;")
    [("SELECT ';'", 0), ('SELECT 2', 19)]
    """
    found: list[tuple[str, int]] = []
    start: int | None = None
    end = 0
    for token in tokenize(script):
        if token.kind == "mark" and token.text == ";":
            if start is not None:
                found.append((script[start:end], start))
            start = None
            continue
        start, end = token.start if start is None else start, token.end
    if start is not None:
        found.append((script[start:end], start))
    return found
