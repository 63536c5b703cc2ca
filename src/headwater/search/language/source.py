"""The query while it is read: its characters, and what is done about those that cannot be read.

One reader serves both ways of reading. Wherever it meets something that it cannot read, it calls `Source.refuse` with
the place, the reason and what to write instead. A strict source raises that; a lenient one notes it, and the reader
goes on as the lines after the call say. So nothing is refused in one way and accepted in the other.

Reading is linear in the length of the query. Every regular expression here is possessive where it repeats, and a search
for a closing quote that failed is not repeated for the same kind of quote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.base.errors import SearchQueryError

__all__ = ["FIELD", "MAX_CLAUSES", "MAX_DEPTH", "MAX_LENGTH", "NAME", "VALUE", "WORD", "Ignored", "Source", "unescape"]

MAX_LENGTH = 65_536
MAX_CLAUSES = 10_000
MAX_DEPTH = 100

_ORDINARY = r'[^\s\\()\[\]{}"^~&|:`]++'
_CAREFUL = r"\\.|&(?!&)|\|(?!\|)"

WORD = re.compile(rf"(?:{_ORDINARY}|{_CAREFUL}|`)++", re.DOTALL)
"""A word, as it is written: it ends before a blank, an operator, and whatever has a meaning of its own."""
VALUE = re.compile(rf"(?:{_ORDINARY}|{_CAREFUL}|[`:])++", re.DOTALL)
"""A word after a field, which may hold colons: a time, an address, a URL."""
NAME = re.compile(rf"(?:{_ORDINARY}|{_CAREFUL}|`(?:[^`]|``)*+`)++", re.DOTALL)
"""The path of a field; what is between backquotes is one name."""
FIELD = re.compile(rf"({NAME.pattern}):", re.DOTALL)

_BLANKS = re.compile(r"\s*+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CLOSED = {
    '"': re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL),
    "/": re.compile(r"/((?:[^/\\]|\\.)*+)/", re.DOTALL),
}


@dataclass(frozen=True, slots=True)
class Ignored:
    """A part of a query that was left out, and why."""

    at: int
    text: str
    reason: str


def unescape(text: str) -> str:
    """The characters that are meant, where a backslash makes the next one ordinary."""
    return _ESCAPED.sub(r"\1", text)


class Source:
    """A query that is being read, strictly or leniently.

    ``text`` is what is read. Leniently, it ends at `MAX_LENGTH`, and has a space for each character that is none.
    """

    def __init__(self, written: str, *, lenient: bool = False) -> None:
        self._written = written
        self._lenient = lenient
        self._refused: list[tuple[int, int, str]] = []
        self._never_closed: set[str] = set()
        if len(written) > MAX_LENGTH:
            self.refuse_limit(MAX_LENGTH, len(written), SearchQueryError.too_long(len(written), MAX_LENGTH))
        self.text = _SURROGATE.sub(" ", written[:MAX_LENGTH])
        for lone in _SURROGATE.finditer(written, 0, MAX_LENGTH):
            why = "half of a surrogate pair is not a character"
            self.refuse(lone.start(), lone.end(), why, "decode the string that it came from, for instance as UTF-8")

    def char(self, at: int) -> str:
        """The character at an offset, or an empty string at the end."""
        return self.text[at : at + 1]

    def skip_blanks(self, at: int) -> int:
        """The offset of the next character that is not blank."""
        blanks = _BLANKS.match(self.text, at)
        assert blanks is not None
        return blanks.end()

    def enclosed(self, at: int) -> re.Match[str] | None:
        """What begins with the quote or slash at ``at``, its inside as group 1; None where it is never closed."""
        opening = self.text[at]
        found = None if opening in self._never_closed else _CLOSED[opening].match(self.text, at)
        if found is None:
            self._never_closed.add(opening)
        return found

    def refuse(self, start: int, end: int, why: str, hint: str, *, caret: int | None = None) -> None:
        """Say that this part cannot be read: raise, pointing at ``caret`` or its start, or note that it is left out."""
        if not self._lenient:
            raise SearchQueryError.unreadable(why, hint).placed_at(self._written, start if caret is None else caret)
        self._refused.append((start, end, why))

    def refuse_limit(self, start: int, end: int, error: SearchQueryError) -> None:
        """Say that this part is more than a query may hold: raise, or note that it is left out."""
        if not self._lenient:
            raise error.placed_at(self._written, start)
        self._refused.append((start, end, error.message))

    @property
    def refusals(self) -> int:
        """How many parts were left out so far."""
        return len(self._refused)

    def ignored(self) -> tuple[Ignored, ...]:
        """What was left out, in the order of the query: of parts inside each other the outermost,
        and neighbours as one.
        """
        parts: list[tuple[int, int, str]] = []
        done = 0
        for start, end, why in sorted(self._refused, key=lambda part: (part[0], -part[1])):
            if end <= done:
                continue
            if parts and start <= done and parts[-1][2] == why:
                parts[-1] = (parts[-1][0], end, why)
            else:
                parts.append((max(start, done), end, why))
            done = end
        return tuple(Ignored(start, self._written[start:end], why) for start, end, why in parts)
