"""Text that has to fit: how wide it is, on paper and in a terminal, and how it is cut.

The problem: a picture is laid out here, and shown elsewhere, in a font that is not known here. The idea: texts are
measured with the widths of DejaVu Sans, the widest of the fonts that browsers fall back to, so that in any other there
is room to spare. A text is first brought onto one line: white space is one space, and whatever a terminal would obey
or XML would refuse is written out.

Invariants: what `one_line` gives is printable; `cut` and `cut_cells` never give more than the width they are given,
unless that is less than an ellipsis, and give a text that fits unchanged.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

__all__ = ["cells", "cut", "cut_cells", "one_line", "printable", "text_width"]

# Hundredths of an em, from the space to the tilde.
_REGULAR = (
    "32 41 46 84 64 96 78 28 40 40 50 84 32 37 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 54 100 69 69 70 78 "
    "64 58 78 76 30 30 66 56 87 75 79 61 79 70 64 62 74 69 99 69 62 69 40 34 40 84 50 50 62 64 55 64 62 36 64 64 28 "
    "28 58 28 98 64 62 64 64 42 53 40 64 60 82 60 60 53 64 34 64 84"
)
_BOLD = (
    "35 46 53 84 70 101 88 31 46 46 53 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 59 100 78 77 74 84 "
    "69 69 83 84 38 38 78 64 100 84 86 74 86 78 73 69 82 78 111 78 73 73 46 37 46 84 50 50 68 72 60 72 68 44 72 72 35 "
    "35 67 35 105 72 69 72 72 50 60 48 72 66 93 65 66 59 72 37 72 84"
)
_WIDTHS = {
    bold: dict(zip(map(chr, range(32, 127)), map(int, table.split()), strict=True))
    for bold, table in ((False, _REGULAR), (True, _BOLD))
}
_JOINERS = "\u200c\u200d"


def printable(text: str) -> str:
    """The text with everything that is not a visible character or a space written out.

    >>> printable("a\\x1b[31m\\ud800")
    'a\\\\x1b[31m\\\\u{d800}'
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


def one_line(text: str) -> str:
    """The text on one line, with single spaces.

    >>> one_line("SELECT a,\\n       b\\n")
    'SELECT a, b'
    """
    return printable(" ".join(text.split()))


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """How wide the text is in pixels, at most, in letters of ``size`` pixels.

    >>> text_width("il", 10) < text_width("WM", 10) < text_width("WM", 10, bold=True)
    True
    """
    widths = _WIDTHS[bold]
    return sum(widths[c] if c in widths else _other_width(c) for c in text) * size / 100


def _other_width(character: str) -> int:
    if unicodedata.combining(character) or character in _JOINERS:
        return 0
    if ord(character) >= 0x1F000:
        return 140
    # A Latin letter with an accent is as wide as a wide one without; other alphabets have wider ones.
    return 80 if ord(character) < 0x250 else 125


def cut(text: str, size: float, width: float, *, bold: bool = False) -> str:
    """The text, with its end replaced by ``…`` where it is wider than ``width`` pixels.

    >>> cut("aggregate", 10, 200), cut("aggregate", 10, 40)
    ('aggregate', 'aggr…')
    """
    return _cut(text, width, lambda part: text_width(part, size, bold=bold))


def cells(text: str) -> int:
    """How many cells of a terminal the text takes.

    >>> cells("abc"), cells("日本"), cells("a\\u0308")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) or c in _JOINERS else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut_cells(text: str, width: int) -> str:
    """The text in at most ``width`` cells.

    >>> cut_cells("aggregate", 5), cut_cells("日本語", 5)
    ('aggr…', '日本…')
    """
    return _cut(text, width, cells)


def _cut(text: str, width: float, measure: Callable[[str], float]) -> str:
    # The narrowest visible letter is a quarter of an em, so a text that is far too long is not measured whole.
    if len(text) < 2000 and measure(text) <= width:
        return text
    low, high = 0, min(len(text), 2000)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle] + "…") <= width else (low, middle - 1)
    return text[:low].rstrip(" ") + "…"
