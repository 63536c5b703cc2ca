"""Short listings: headings and rows of text, fitted to a terminal, and columns for `cut` and `grep` elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwater.cli._screen import Screen

__all__ = ["print_listing", "time_text"]


def print_listing(
    screen: Screen, headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
) -> None:
    """Print the rows under their headings; nothing where there are none."""
    if not rows:
        return
    from headwater.query.rendering.terminal import draw_texts, terminal_style

    width, colour = terminal_style(screen.out) if screen.is_terminal else (None, False)
    screen.data(draw_texts(headings, rows, right=right, width=width, colour=colour))


def time_text(iso: str) -> str:
    """
    >>> time_text("2024-05-01T12:00:00.123+00:00")
    '2024-05-01 12:00:00'
    """
    return iso.replace("T", " ")[:19]
