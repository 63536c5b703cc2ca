"""The text between PATTERN ( and its closing parenthesis, read into a tree.

    alternation    = concatenation { "|" concatenation }
    concatenation  = { primary [ quantifier ] }
    primary        = name | "^" | "$" | "(" [ alternation ] ")" | "{-" alternation "-}" | PERMUTE "(" … { "," … } ")"
    quantifier     = ( "*" | "+" | "?" | "{n}" | "{n,}" | "{,m}" | "{n,m}" ) [ "?" ]

Names are compared without case, as all names of Spark SQL, and are spelled as they are written first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from headwater.sql.nodes import Refused, Wrong
from headwater.sql.row_patterns.syntax import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Quantified,
    Variable,
)

__all__ = ["MOST_REPEATS", "parse_pattern"]

MOST_REPEATS = 10_000
"""The largest number that a quantifier may have."""

_DEEPEST = 200
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`|[^\W\d]\w*)|(\d+)|(\{-|-\}|[()|*+?{},^$])|(\S))")
_BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_FORM = "write a pattern such as PATTERN (A B+ C*? (D | E){2,3})"


def parse_pattern(text: str) -> Pattern:
    """The tree of a pattern.

    >>> parse_pattern("A B*?")
    Concatenation(parts=(Variable(name='A'), Quantified(part=Variable(name='B'), least=0, most=None, reluctant=True)))
    """
    reader = _PatternReader(text)
    found = reader.alternation()
    if reader.kind != "end":
        raise reader.wrong("this is not expected in a row pattern")
    return found


@dataclass
class _PatternReader:
    text: str
    at: int = 0
    kind: str = ""
    value: str = ""
    start: int = 0
    depth: int = 0
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next()

    def next(self) -> str:
        """The token that was there; the one behind it is read."""
        was = self.value
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.kind, self.value, self.start = "end", "", len(self.text)
            return was
        group = match.lastindex
        assert group is not None
        self.kind, self.value = ("", "name", "number", "mark", "strange")[group], match[group]
        self.start, self.at = match.start(group), match.end()
        return was

    def sees(self, *marks: str) -> bool:
        return self.kind == "mark" and self.value in marks

    def wrong(self, what: str, hint: str = _FORM) -> Refused:
        error = Wrong(what, hint)
        error.position = self.start
        return error

    def expect(self, mark: str) -> None:
        if not self.sees(mark):
            raise self.wrong(f"`{mark}` is expected here in a row pattern")
        self.next()

    def alternation(self) -> Pattern:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.wrong(f"a row pattern is nested more than {_DEEPEST} deep", "name its parts with SUBSET")
        parts = [self.concatenation()]
        while self.sees("|"):
            self.next()
            parts.append(self.concatenation())
        self.depth -= 1
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, Alternation) else (part,))]
        return flat[0] if len(flat) == 1 else Alternation(tuple(flat))

    def concatenation(self) -> Pattern:
        parts: list[Pattern] = []
        while self.kind == "name" or self.sees("(", "^", "$", "{-"):
            parts.append(self.quantified(self.primary()))
        if self.kind in ("number", "strange") or self.sees("*", "+", "?", "{"):
            raise self.wrong("this is not expected in a row pattern")
        if not parts:
            raise self.wrong("a part of the row pattern is missing here", "write () for an empty part")
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, Concatenation) else (part,))]
        return flat[0] if len(flat) == 1 else Concatenation(tuple(flat))

    def primary(self) -> Pattern:
        if self.kind == "name":
            word = self.next()
            if word.upper() == "PERMUTE" and self.sees("("):
                return self.permutation()
            name = word[1:-1].replace("``", "`") if word.startswith("`") else word
            return Variable(self.names.setdefault(name.lower(), name))
        mark = self.next()
        if mark in "^$":
            return Anchor(mark == "$")
        if mark == "{-":
            part = self.alternation()
            self.expect("-}")
            return Exclusion(part)
        if self.sees(")"):
            self.next()
            return Concatenation(())
        part = self.alternation()
        self.expect(")")
        return part

    def permutation(self) -> Pattern:
        self.expect("(")
        parts = [self.alternation()]
        while self.sees(","):
            self.next()
            parts.append(self.alternation())
        self.expect(")")
        return parts[0] if len(parts) == 1 else Permutation(tuple(parts))

    def quantified(self, part: Pattern) -> Pattern:
        if not self.sees("*", "+", "?", "{"):
            return part
        start = self.start
        least, most = _BOUNDS[self.next()] if not self.sees("{") else self.bounds()
        if most is not None and (most < least or most == 0):
            self.start = start
            raise self.wrong("this quantifier allows no number of rows", "put the smaller number first: {2,3}")
        reluctant = self.sees("?")
        if reluctant:
            self.next()
        if self.sees("*", "+", "?", "{"):
            raise self.wrong("a part of a row pattern has one quantifier", "put the part into parentheses")
        return Quantified(part, least, most, reluctant)

    def bounds(self) -> tuple[int, int | None]:
        self.expect("{")
        least = self.number()
        if self.sees(","):
            self.next()
            most = self.number()
        else:
            most = least
        if least is None and most is None:
            raise self.wrong("a number is expected in a quantifier", "write {2}, {2,}, {,3} or {2,3}")
        self.expect("}")
        return least or 0, most

    def number(self) -> int | None:
        if self.kind != "number":
            return None
        if int(self.value) > MOST_REPEATS:
            raise self.wrong(f"a quantifier goes up to {MOST_REPEATS:,}", "use * or + with a condition that ends it")
        return int(self.next())
