"""Java's regular expressions, rewritten for Python's engine: the part of them that both understand alike.

Both backtrack, prefer the left alternative and treat empty matches alike, so most of the syntax only has to be spelled
out: ``.`` leaves out all of Java's line ends, ``\\\\d \\\\w \\\\s`` are ASCII, ``$`` stands before a last line end too,
``(?i)`` at the start folds ASCII letters only. Refused are: word boundaries (their meaning changed with Java 19), back
references, possessive repetition, classes in classes, flags inside, Unicode properties, and a repeated group that may
be empty, whose captures differ.
"""

from __future__ import annotations

import functools
import re

__all__ = ["RegexpError", "compiled", "expanded", "found"]

_DOT = "[^\n\r\x85\u2028\u2029]"
_END = "(?:(?=\r\n\\Z)|(?=[\r\x85\u2028\u2029]\\Z)|(?<!\r)(?=\n\\Z)|\\Z)"
_SETS = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": " \\t\\n\\x0b\\f\\r",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Upper": "A-Z",
    "Lower": "a-z",
    "Space": " \\t\\n\\x0b\\f\\r",
    "Punct": "!-/:-@\\[-`{-~",
}
_CONTROLS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f"}
_REPEAT = re.compile(r"([*+?]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})(\?)?(?![*+?{])", re.ASCII)
_PROPERTY = re.compile(r"\{(Alpha|Digit|Alnum|Upper|Lower|Space|Punct)\}")


class RegexpError(ValueError):
    """A pattern that is not known to mean the same in Java and here."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern for Python's engine.

    >>> compiled("(?i)a.b$").fullmatch("AxB") is not None, compiled("a.b").search("a\\nb")
    (True, None)
    """
    flags = re.ASCII
    text = pattern
    if text.startswith("(?i)"):
        flags |= re.IGNORECASE
        text = text[4:]
    reader = _Reader(text, pattern)
    written = reader.alternatives()
    if reader.at != len(text):
        raise RegexpError(f"the pattern {pattern!r}")
    try:
        return re.compile(written, flags)
    except (re.error, OverflowError):
        raise RegexpError(f"the pattern {pattern!r}") from None


class _Reader:
    def __init__(self, text: str, pattern: str) -> None:
        self.text, self.pattern, self.at = text, pattern, 0

    def refuse(self) -> RegexpError:
        return RegexpError(f"the pattern {self.pattern!r}")

    def alternatives(self) -> str:
        parts = [self.sequence()]
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            parts.append(self.sequence())
        return "|".join(parts)

    def sequence(self) -> str:
        out = ""
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            piece, group, repeatable = self.piece()
            match = _REPEAT.match(self.text, self.at)
            if match is None:
                if self.text[self.at : self.at + 1] in ("*", "+", "?", "{"):
                    raise self.refuse()
                out += piece
                continue
            if not repeatable or (group and re.compile(piece).fullmatch("") is not None):
                raise self.refuse()
            self.at = match.end()
            out += piece + match[0]
        return out

    def piece(self) -> tuple[str, bool, bool]:
        """A piece's Python spelling, whether it is a group, and whether it may be repeated."""
        char = self.text[self.at]
        if char == "(":
            return self.group()
        if char == "[":
            return self.set(), False, True
        self.at += 1
        if char == "\\":
            inside, negated = self.escape()
            if inside is None:
                return negated, False, True
            return f"[{'^' if negated else ''}{inside}]", False, True
        if char == ".":
            return _DOT, False, True
        if char == "^":
            return "\\A", False, False
        if char == "$":
            return _END, False, False
        if char in "*+?{":
            raise self.refuse()
        return re.escape(char), False, True

    def group(self) -> tuple[str, bool, bool]:
        opening = next((o for o in ("(?:", "(?=", "(?!", "(?<=", "(?<!") if self.text.startswith(o, self.at)), "(")
        if opening == "(" and self.text.startswith("(?", self.at):
            raise self.refuse()
        self.at += len(opening)
        inner = self.alternatives()
        if self.text[self.at : self.at + 1] != ")":
            raise self.refuse()
        self.at += 1
        return f"{opening}{inner})", True, opening in ("(", "(?:")

    def escape(self) -> tuple[str | None, str]:
        """After a backslash: (inside of a set, "^" if negated), or (None, spelling) for one character."""
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char and char in "dws":
            return _SETS[char], ""
        if char and char in "DWS":
            return _SETS[char.lower()], "^"
        if char and char in "pP" and (match := _PROPERTY.match(self.text, self.at)):
            self.at = match.end()
            return _SETS[match[1]], "^" if char == "P" else ""
        if char in _CONTROLS:
            return None, _CONTROLS[char]
        if char and not char.isalnum() and char.isascii():
            return None, re.escape(char)
        raise self.refuse()

    def set(self) -> str:
        self.at += 1
        out = "["
        if self.text[self.at : self.at + 1] == "^":
            out, self.at = "[^", self.at + 1
        first = True
        while True:
            char = self.text[self.at : self.at + 1]
            if char == "]" and not first:
                self.at += 1
                return out + "]"
            if char in ("", "[", "]", "^") or self.text.startswith("&&", self.at):
                raise self.refuse()
            out += self._range(first)
            first = False

    def _range(self, first: bool) -> str:
        low, single = self._member()
        dashed = self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", "")
        if low == "\\-" and not first and self.text[self.at : self.at + 1] != "]":
            raise self.refuse()
        if not dashed:
            return low
        self.at += 1
        high, plain = self._member()
        if not single or not plain or low == "\\-":
            raise self.refuse()
        return f"{low}-{high}"

    def _member(self) -> tuple[str, bool]:
        """One member of a set, and whether it is a single character."""
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char in ("", "[", "]"):
            raise self.refuse()
        if char != "\\":
            return re.escape(char), True
        inside, spelled = self.escape()
        if inside is None:
            return spelled, True
        if spelled:
            raise self.refuse()
        return inside, False


def found(pattern: str, text: str) -> list[re.Match[str]]:
    """All matches from left to right.

    >>> [m.group() for m in found("a*", "baa")]
    ['', 'aa', '']
    """
    search = compiled(pattern).search
    out, at = [], 0
    while at <= len(text) and (match := search(text, at)) is not None:
        out.append(match)
        # After an empty match Java moves on by one unit of UTF-16, which is half of a character beyond U+FFFF.
        if match.end() == match.start() and not text.isascii() and max(text) > "\uffff":
            raise RegexpError("an empty match in a text with characters beyond U+FFFF")
        at = match.end() + (match.end() == match.start())
    return out


@functools.lru_cache(maxsize=512)
def _template(replacement: str, groups: int) -> tuple[str | int, ...]:
    """Texts and numbers of groups."""
    out: list[str | int] = []
    at = 0
    while at < len(replacement):
        char = replacement[at]
        if char == "\\":
            if at + 1 == len(replacement):
                raise RegexpError(f"the replacement {replacement!r}")
            out.append(replacement[at + 1])
            at += 2
        elif char == "$":
            match = re.compile("[0-9]", re.ASCII).match(replacement, at + 1)
            if match is None or int(match[0]) > groups:
                raise RegexpError(f"the replacement {replacement!r}")
            number, at = int(match[0]), at + 2
            # More digits belong to the number as long as there is such a group.
            while (
                at < len(replacement)
                and replacement[at] in "0123456789"
                and 10 * number + int(replacement[at]) <= groups
            ):
                number, at = 10 * number + int(replacement[at]), at + 1
            out.append(number)
        else:
            out.append(char)
            at += 1
    return tuple(out)


def expanded(match: re.Match[str], replacement: str) -> str:
    """A replacement as Java writes it, with ``$1`` for groups and a backslash before what stands for itself.

    >>> expanded(compiled("(a)(b)").search("ab"), "$2-$1")
    'b-a'
    """
    parts = _template(replacement, match.re.groups)
    return "".join((match[p] or "") if isinstance(p, int) else p for p in parts)
