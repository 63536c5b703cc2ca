"""The picture of the guide: data files of a table by version, the splits that cover them, and what a search reads.

Time runs to the right, one column per version of the table. A row is a data file, drawn over the versions that have it, with
the rows that a deletion vector marks in each. To the left of it stands the split that covers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from headwater.observe.palette import kind_colour
from headwater.observe.svg import _style

__all__ = ["FileLine", "draw"]

_LEFT, _STEP, _TOP, _LINE = 210, 168, 116, 46
_COLOURS = tuple(kind_colour(kind) for kind in ("source", "join", "cogroup"))


@dataclass(frozen=True)
class FileLine:
    """A data file: the versions that have it, how many rows are deleted in each, and the split that covers it."""

    versions: tuple[int, ...]
    rows: int
    deleted: tuple[int, ...]
    split: int | None


def draw(title: str, versions: Sequence[str], files: Sequence[FileLine]) -> str:
    """The picture, as text."""
    width = _LEFT + _STEP * len(versions) + 24
    height = _TOP + _LINE * len(files) + 56
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hw-graph" role="img" aria-label="{escape(title)}"',
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="10"/>',
        f'<text class="title ink" x="24" y="40">{escape(title)}</text>',
        (
            '<text class="small dim" x="24" y="59">the log says which files and rows each version has; '
            "a split covers files, and never changes</text>"
        ),
        f'<text class="caption dim" x="24" y="{_TOP - 18}">splits</text>',
    ]
    for at, text in enumerate(versions):
        out.append(f'<text class="caption ink" x="{_LEFT + at * _STEP + 8}" y="{_TOP - 18}">{escape(text)}</text>')
    for line, one in enumerate(files):
        y = _TOP + line * _LINE
        colour = _COLOURS[(one.split if one.split is not None else 2) % len(_COLOURS)]
        said = "no split yet" if one.split is None else f"split {one.split + 1}"
        out.append(f'<rect x="24" y="{y}" width="150" height="30" rx="6" fill="{colour}" opacity="0.9"/>')
        out.append(f'<text class="small" x="36" y="{y + 20}" fill="#fff">{said}</text>')
        for version, deleted in zip(one.versions, one.deleted, strict=True):
            x = _LEFT + version * _STEP
            out.append(
                f'<rect x="{x}" y="{y}" width="{_STEP - 10}" height="30" rx="6" fill="{colour}" fill-opacity="0.18" '
                f'stroke="{colour}"/>'
            )
            rows = f"{one.rows} row{'' if one.rows == 1 else 's'}"
            left = f"{one.rows - deleted} of {rows}" if deleted else rows
            out.append(f'<text class="small ink" x="{x + 10}" y="{y + 20}">{left}</text>')
    said = "a search at any version: its files, by their splits, without the rows that are deleted; files without a split are indexed on the spot"
    out.append(f'<text class="small dim" x="24" y="{height - 24}">{escape(said)}</text>')
    return "\n".join([*out, "</svg>", ""])
