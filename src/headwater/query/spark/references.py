"""References: which tables a text of Spark SQL names, and where, so that each can be given another name.

Spark understands more SQL than we do, so the text is not parsed but walked over once, token by token. A table stands
where a relation is expected: after FROM, after JOIN, and after a comma between relations. What opens a parenthesis
there is a query or a join of its own. A name of WITH hides a table of the same name, from the end of its definition to
the end of the query it belongs to.

Invariant: only tokens that are the name of a relation (and the time travel behind it) are ever replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from headwater.base.errors import ExpressionError
from headwater.sql.tokens import Token, tokenize

__all__ = ["Reference", "columns_named", "references", "replaced"]

_ENDS_FROM = {
    "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "MINUS", "WINDOW",
    "QUALIFY", "SORT", "CLUSTER", "DISTRIBUTE", "SELECT", "LATERAL", "PIVOT", "UNPIVOT",
}  # fmt: skip
_NO_ALIAS = _ENDS_FROM | {
    "ON", "USING", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL", "TABLESAMPLE", "FOR",
    "VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME", "OUTER", "WHEN", "SET",
}  # fmt: skip
_NO_TABLE = {"VALUES", "SELECT", "LATERAL", "TABLE", "WITH"}
_BEFORE_QUERY = {"(", ")", "UNION", "ALL", "DISTINCT", "EXCEPT", "INTERSECT", "MINUS"}
# These make columns of a relation count that the text does not name.
_READS_ALL = {"NATURAL", "PIVOT", "UNPIVOT", "TABLE"}
_TRAVEL = {"VERSION": "version", "SYSTEM_VERSION": "version", "TIMESTAMP": "timestamp", "SYSTEM_TIME": "timestamp"}


@dataclass(frozen=True)
class Reference:
    """A table in the text: its name, the tokens of a time travel's value, and what of the text it takes up."""

    parts: tuple[str, ...]
    start: int
    end: int
    travel: str | None = None
    value: tuple[Token, ...] = ()
    arguments: tuple[Token, ...] | None = None
    has_alias: bool = False

    @property
    def name(self) -> str:
        return ".".join(self.parts)


@dataclass
class _Frame:
    """What is known inside one pair of parentheses."""

    is_query: bool = False
    in_from: bool = False
    expects: bool = False
    # A table that is a query by itself (TABLE t), which takes no alias.
    bare: bool = False
    in_with: bool = False
    recursive: bool = False
    names: set[str] = field(default_factory=set)
    defining: str | None = None


def references(text: str) -> list[Reference]:
    """The tables and table functions of a query, in the order of the text.

    >>> [r.name for r in references("WITH a AS (SELECT * FROM b) SELECT * FROM a JOIN s.c USING (id), d")]
    ['b', 's.c', 'd']
    """
    return _Walk(list(tokenize(text))).found


class _Walk:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.found: list[Reference] = []
        self.frames = [_Frame()]
        self.at = 0
        while self.at < len(tokens):
            self._step()

    def _peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].word if 0 <= at < len(self.tokens) else ""

    def _step(self) -> None:
        token, frame = self.tokens[self.at], self.frames[-1]
        word = token.word
        if word == "(" and token.kind == "mark":
            # A parenthesis where a relation is expected holds a query, or relations.
            self.frames.append(_Frame(in_from=frame.expects, expects=frame.expects))
            frame.expects = False
            self.at += 1
        elif word == ")" and token.kind == "mark":
            if len(self.frames) > 1:
                self.frames.pop()
            outer = self.frames[-1]
            self.at += 1
            if outer.defining is not None:
                outer.names.add(outer.defining)
                outer.defining = None
                if self._peek() == ",":
                    outer.in_with = True
                    self.at += 1
        elif frame.in_with and token.kind in ("word", "name"):
            self._definition(frame, token)
        elif token.kind in ("word", "name") and frame.expects and word not in _NO_TABLE:
            self._relation(frame)
        else:
            self._keyword(frame, token, word)
            self.at += 1

    def _keyword(self, frame: _Frame, token: Token, word: str) -> None:
        if token.kind == "mark" and word == ",":
            frame.expects = frame.in_from
            return
        if token.kind != "word":
            return
        if word == "WITH":
            frame.in_with, frame.in_from, frame.expects = True, False, False
        elif word == "SELECT":
            frame.is_query, frame.in_from, frame.expects = True, False, False
        elif (
            word == "FROM"
            and (frame.is_query or self.at == 0 or self._peek(-1) == "(")
            and self._peek(-1) != "DISTINCT"
        ) or word == "JOIN":
            frame.in_from = frame.expects = True
        elif word in _ENDS_FROM and frame.in_from:
            frame.in_from = frame.expects = False
        elif word == "TABLE" and (self.at == 0 or self._peek(-1) in _BEFORE_QUERY):
            frame.expects = frame.bare = True
        elif word in _NO_TABLE:
            frame.expects = False

    def _definition(self, frame: _Frame, token: Token) -> None:
        """``name (columns) AS``; the parenthesis that follows is the definition."""
        if token.word == "RECURSIVE" and self._peek(1) not in ("AS", "("):
            frame.recursive = True
        else:
            frame.defining, frame.in_with = str(token.value).lower(), False
            while self.at < len(self.tokens) and self._peek() != "AS":
                self.at += 1
            if frame.recursive:
                frame.names.add(frame.defining)
        self.at += 1

    def _relation(self, frame: _Frame) -> None:
        bare, frame.expects, frame.bare = frame.bare, False, False
        start = self.at
        parts = [str(self.tokens[self.at].value)]
        self.at += 1
        while (
            self._peek() == "." and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].kind in ("word", "name")
        ):
            parts.append(str(self.tokens[self.at + 1].value))
            self.at += 2
        first, last = self.tokens[start], self.tokens[self.at - 1]
        if self._peek() == "(":
            self._function(parts, first)
            return
        hidden = any(parts[0].lower() in f.names for f in self.frames) and len(parts) == 1
        travel, value, end = self._travel(last.end)
        if not hidden or travel is not None:
            self.found.append(
                Reference(tuple(parts), first.start, end, travel, value, has_alias=bare or self._has_alias())
            )

    def _travel(self, end: int) -> tuple[str | None, tuple[Token, ...], int]:
        if self._peek() == "@" and self.tokens[self.at].start == end:
            return self._short_version()
        begin = self.at + (1 if self._peek() == "FOR" else 0)
        words = [self.tokens[i].word for i in range(begin, min(begin + 3, len(self.tokens)))]
        if len(words) < 3 or words[0] not in _TRAVEL or words[1:] != ["AS", "OF"]:
            return None, (), end
        at = begin + 3
        if words[0] in ("TIMESTAMP", "SYSTEM_TIME") and (now := self._now(at)) is not None:
            # The newest version is read anyway.
            self.at = now + 1
            return None, (), self.tokens[now].end
        if at < len(self.tokens) and self.tokens[at].word in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
            at += 1
        value = self.tokens[begin + 3 : at + 1]
        self.at = min(at + 1, len(self.tokens))
        return _TRAVEL[words[0]], tuple(value), value[-1].end if value else end

    def _short_version(self) -> tuple[str, tuple[Token, ...], int]:
        """``t@v3`` is Delta's short form of ``t VERSION AS OF 3``."""
        mark = self.tokens[self.at]
        word = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        if word is None or word.start != mark.end or not re.fullmatch("[vV][0-9]+", word.text):
            why = "a version is written t@v3, or VERSION AS OF 3"
            raise ExpressionError.syntax(mark.source, why, mark.start)
        self.at += 2
        return "version", (replace(word, kind="number", start=word.start + 1),), word.end

    def _now(self, at: int) -> int | None:
        """Where ``current_timestamp()`` or ``now()`` ends, if it begins here."""
        words = [t.word for t in self.tokens[at : at + 3]]
        if words[:1] and words[0] in ("CURRENT_TIMESTAMP", "NOW") and words[1:] == ["(", ")"]:
            return at + 2
        return at if words[:1] == ["CURRENT_TIMESTAMP"] else None

    def _has_alias(self) -> bool:
        if self._peek() == "AS":
            return True
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        return token is not None and (token.kind == "name" or (token.kind == "word" and token.word not in _NO_ALIAS))

    def _function(self, parts: list[str], first: Token) -> None:
        depth, opened = 0, self.at
        while self.at < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self._peek(), 0)
            self.at += 1
            if depth == 0:
                break
        inner = tuple(self.tokens[opened + 1 : self.at - 1])
        end = self.tokens[self.at - 1].end
        self.found.append(Reference(tuple(parts), first.start, end, arguments=inner, has_alias=self._has_alias()))


def columns_named(text: str, columns: Sequence[str]) -> list[str]:
    """The columns that a query can read, since it names them; all of them where it may read columns without their
    names.

    >>> columns_named("SELECT id FROM search('t', 'x') WHERE `Body` IS NULL", ["id", "body", "_score"])
    ['id', 'body']
    """
    tokens = list(tokenize(text))
    if any(t.text == "*" if t.kind == "mark" else t.kind == "word" and t.word in _READS_ALL for t in tokens):
        return list(columns)
    named = {str(t.value).lower() for t in tokens if t.kind in ("word", "name")}
    return [c for c in columns if c.lower() in named] or list(columns[-1:])


def replaced(
    text: str, found: list[Reference], name_of: Callable[[Reference], str | None]
) -> tuple[str, list[tuple[int, int]]]:
    """The text with other names, and the pairs of places (there, here) by which a place in it is found again."""
    out, at, length = [], 0, 0
    shifts = [(0, 0)]
    for reference in found:
        new = name_of(reference)
        if new is None:
            continue
        alias = "" if reference.has_alias else f" AS `{reference.parts[-1].replace('`', '``')}`"
        piece = text[at : reference.start] + f"`{new}`{alias}"
        out.append(piece)
        length += len(piece)
        at = reference.end
        shifts.append((length, at))
    out.append(text[at:])
    return "".join(out), shifts
