"""Short listings: headings and rows of text, fitted to a terminal, and columns for `cut` and `grep` elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwater.cli._screen import Screen

__all__ = ["print_listing", "size_text", "time_text"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def print_listing(
    screen: Screen, headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
) -> None:
    """Print the rows under their headings; nothing where there are none."""
    if not rows:
        return
    from headwater.query.rendering.terminal import draw_texts, terminal_style

    width, colour = terminal_style(screen.out) if screen.is_terminal else (None, False)
    screen.data(draw_texts(headings, rows, right=right, width=width, colour=colour))


def size_text(size_bytes: int) -> str:
    """
    >>> size_text(0), size_text(1536), size_text(5 << 40)
    ('0 B', '1.5 KiB', '5.0 TiB')
    """
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size_bytes} B"


def time_text(iso: str) -> str:
    """
    >>> time_text("2024-05-01T12:00:00.123+00:00")
    '2024-05-01 12:00:00'
    """
    return iso.replace("T", " ")[:19]
