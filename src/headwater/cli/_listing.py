"""Short listings: headings and rows of text, fitted to a terminal, and columns for `cut` and `grep` elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from headwater.cli._screen import Screen

__all__ = ["print_entries", "print_listing", "time_text"]

_GAP = "  "
_INDENT = "    "


def print_listing(
    screen: Screen, headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
) -> None:
    """Print the rows under their headings; nothing where there are none."""
    if not rows:
        return
    from headwater.query.rendering.terminal import draw_texts, terminal_style

    width, colour = terminal_style(screen.out) if screen.is_terminal else (None, False)
    screen.data(draw_texts(headings, rows, right=right, width=width, colour=colour))


def print_entries(
    screen: Screen, headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int], head: int
) -> None:
    """The same, for rows that may be longer than a terminal is wide: then each is an entry of its own.

    An entry is a line of the first ``head`` values, and below it the others by name, wrapped and indented: nothing is
    left out.
    """
    if not rows:
        return
    from headwater.query.rendering.terminal import draw_texts, terminal_style

    width, colour = terminal_style(screen.out) if screen.is_terminal else (None, False)
    if width is None or _natural(headings, rows) <= width:
        screen.data(draw_texts(headings, rows, right=right, width=width, colour=colour))
        return
    bold, plain = ("\x1b[1m", "\x1b[0m") if colour else ("", "")
    for row in rows:
        for line in _wrapped(_GAP.join(row[:head]), width, ""):
            screen.data(f"{bold}{line}{plain}")
        for heading, text in zip(headings[head:], row[head:], strict=True):
            for line in _wrapped(f"{heading}: {text}", width, _INDENT) if text else ():
                screen.data(line)


def _natural(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """The cells that a table takes in which nothing is cut."""
    from headwater.observe.measure import cells

    widest = (max(cells(text) for text in column) for column in zip(headings, *rows, strict=True))
    return sum(widest) + len(_GAP) * (len(headings) - 1)


def _wrapped(text: str, width: int, indent: str) -> Iterator[str]:
    """Lines of at most ``width`` cells, broken at spaces where that is possible.

    >>> list(_wrapped("one two three", 9, "  "))
    ['  one two', '  three']
    >>> list(_wrapped("abcdefgh", 6, ""))
    ['abcdef', 'gh']
    """
    from headwater.observe.measure import cells
    from headwater.query.rendering.terminal import escaped

    room, line = max(width - len(indent), 2), ""
    for word in escaped(text).split(" "):
        both = f"{line} {word}" if line else word
        if cells(both) <= room:
            line = both
            continue
        if line:
            yield f"{indent}{line.rstrip()}"
        line = word
        while cells(line) > room:
            at = next(n for n in range(len(line), 0, -1) if cells(line[:n]) <= room)
            yield f"{indent}{line[:at]}"
            line = line[at:]
    if line:
        yield f"{indent}{line}"


def time_text(iso: str) -> str:
    """
    >>> time_text("2024-05-01T12:00:00.123+00:00")
    '2024-05-01 12:00:00'
    """
    return iso.replace("T", " ")[:19]
