"""Pieces of messages: near names, short lists, and a text with a place in it underlined."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence

__all__ = ["candidates_hint", "did_you_mean", "list_some", "shortened", "top_level", "underline"]


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The nearest candidate to ``name``, ignoring case, or None.

    >>> did_you_mean("Oders", ["orders", "cards"])
    'orders'
    """
    by_lower = {c.lower(): c for c in candidates}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[near[0]] if near else None


def list_some(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown + (f", … ({len(names)} in all)" if len(names) > limit else "")


def candidates_hint(name: str, candidates: Sequence[str], kind: str) -> str:
    near = did_you_mean(name, candidates)
    lead = f"did you mean `{near}`? " if near else ""
    return f"{lead}{kind}: {list_some(candidates)}" if candidates else f"there are no {kind} yet"


def top_level(column: str) -> str | None:
    """A column, for actions that change columns; None for a field inside one, which cannot be changed alone."""
    return None if "." in column else column


def shortened(text: str, longest: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


# What stands before the text in a message ("  where: "), and how much of a line is shown.
_INDENT = 9
_SHOWN = 160


def underline(text: str, position: int | None) -> str:
    """The line of ``text`` that holds ``position``, with a caret under it; of a long line, the part around it.

    >>> print(underline("select a\\nfrom b", 14))
    line 2: from b
                          ^
    """
    if position is None or not 0 <= position <= len(text):
        return shortened(text)
    lead = ""
    if "\n" in text.strip("\n"):
        number = text.count("\n", 0, position)
        start = text.rfind("\n", 0, position) + 1
        text, position, lead = text.split("\n")[number], position - start, f"line {number + 1}: "
    line = text.strip("\r\n") if position <= len(text.rstrip("\r\n")) else text
    if len(line) > _SHOWN:
        first = max(0, min(position - _SHOWN // 2, len(line) - _SHOWN))
        last = first + _SHOWN
        before, behind = "…" if first else "", "…" if last < len(line) else ""
        line, position = f"{before}{line[first:last]}{behind}", position - first + len(before)
    return f"{lead}{line}\n{' ' * (_INDENT + len(lead))}{_blanks(line[:position])}^"


def _blanks(text: str) -> str:
    """As wide as ``text`` on a screen: a tab stays one, a wide character is two blanks, and a combining one none."""
    return "".join(c if c == "\t" else " " * _width(c) for c in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
