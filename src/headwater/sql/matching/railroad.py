"""A row pattern as a railroad diagram: one SVG document that needs nothing else.

A match is a way along the rails from left to right. A box takes a row; rails that part are alternatives, the upper one
preferred; a rail back below a part repeats it, one above passes it by, and their numbers say how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from headwater.sql.row_patterns import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Quantified,
    Variable,
)

__all__ = ["draw_railroad"]

_GAP, _TURN, _HALF, _LETTER = 18, 10, 15, 8.2
_STYLE = """
  .rail { fill: none; stroke: currentColor; stroke-width: 1.5; }
  .box { fill: #3b82f622; stroke: #3b82f6; stroke-width: 1.5; }
  .around { fill: none; stroke: #9ca3af; stroke-dasharray: 4 3; }
  text { font: 13px ui-monospace, monospace; fill: currentColor; }
  .note { font-size: 11px; fill: #6b7280; }
"""


@dataclass(frozen=True)
class _Piece:
    """A part of the picture: its width, how far it goes above and below its rail, and how it is drawn at a place."""

    width: float
    above: float
    below: float
    draw: Callable[[float, float], list[str]]


def draw_railroad(pattern: Pattern, conditions: Sequence[tuple[str, str]] = ()) -> str:
    """The picture of a pattern, with the conditions of its variables below.

    >>> picture = draw_railroad(Quantified(Variable("A"), 1, None), [("A", "x > 1")])
    >>> picture.startswith("<svg"), "x &gt; 1" in picture
    (True, True)
    """
    piece = _piece(pattern)
    top, left = piece.above + 16, 24
    bottom = top + piece.below + 16
    written = dict(conditions)
    lines = [f"{name}: {text}" for name, text in conditions]
    width = max(piece.width + 2 * left, *(len(line) * 7.0 + 2 * left for line in lines), 0)
    height = bottom + 18 * len(lines) + 8
    body = [_rail(f"M {left - 14} {top} H {left}"), *piece.draw(left, top)]
    end = left + piece.width
    body += [_rail(f"M {end} {top} H {end + 14}"), _dot(left - 14, top), _dot(end + 14, top)]
    for number, line in enumerate(lines):
        body.append(f'<text class="note" x="{left}" y="{bottom + 18 * number + 12:g}">{escape(line)}</text>')
    body = _titled(body, written)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>{"".join(body)}</svg>'


def _titled(body: list[str], conditions: dict[str, str]) -> list[str]:
    """Boxes say their condition when pointed at."""
    out = []
    for line in body:
        for name, text in conditions.items():
            mark = f'data-name="{escape(name)}">'
            line = line.replace(mark, f"{mark}<title>{escape(text)}</title>", 1)  # noqa: PLW2901
        out.append(line)
    return out


def _rail(path: str) -> str:
    return f'<path class="rail" d="{path}"/>'


def _dot(x: float, y: float) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="3.5" fill="currentColor"/>'


def _note(x: float, y: float, text: str) -> str:
    return f'<text class="note" x="{x:g}" y="{y:g}" text-anchor="middle">{escape(text)}</text>'


def _piece(pattern: Pattern) -> _Piece:
    if isinstance(pattern, Variable):
        return _box(pattern.name, "box")
    if isinstance(pattern, Anchor):
        return _box("end" if pattern.end else "start", "around")
    if isinstance(pattern, Concatenation):
        return _row([_piece(part) for part in pattern.parts])
    if isinstance(pattern, Alternation):
        return _parted([_piece(part) for part in pattern.parts])
    if isinstance(pattern, Permutation):
        return _around(_row([_piece(part) for part in pattern.parts]), "in any order")
    if isinstance(pattern, Exclusion):
        return _around(_piece(pattern.part), "left out")
    return _repeated(_piece(pattern.part), pattern)


def _box(name: str, kind: str) -> _Piece:
    width = len(name) * _LETTER + 20

    def draw(x: float, y: float) -> list[str]:
        size = f'x="{x:g}" y="{y - _HALF + 2:g}" width="{width:g}" height="{2 * _HALF - 4:g}"'
        shape = f'<rect class="{kind}" {size} rx="6"/>'
        text = f'<text x="{x + width / 2:g}" y="{y + 4.5:g}" text-anchor="middle">{escape(name)}</text>'
        return [f'<g data-name="{escape(name)}">{shape}{text}</g>']

    return _Piece(width, _HALF, _HALF, draw)


def _row(parts: list[_Piece]) -> _Piece:
    width = sum(p.width for p in parts) + _GAP * max(len(parts) - 1, 1)

    def draw(x: float, y: float) -> list[str]:
        out, at = [], x
        for number, part in enumerate(parts):
            if number:
                out.append(_rail(f"M {at:g} {y:g} h {_GAP}"))
                at += _GAP
            out += part.draw(at, y)
            at += part.width
        return [*out, _rail(f"M {at:g} {y:g} H {x + width:g}")]

    return _Piece(width, max((p.above for p in parts), default=4), max((p.below for p in parts), default=4), draw)


def _parted(parts: list[_Piece]) -> _Piece:
    inner = max(p.width for p in parts)
    width = inner + 4 * _TURN
    drops = [0.0]
    for before, part in pairwise(parts):
        drops.append(drops[-1] + before.below + part.above + 8)

    def draw(x: float, y: float) -> list[str]:
        out = []
        for part, drop in zip(parts, drops, strict=True):
            left, right = x + 2 * _TURN, x + width - 2 * _TURN
            if drop:
                out.append(
                    _rail(
                        f"M {x:g} {y:g} q {_TURN} 0 {_TURN} {_TURN} V {y + drop - _TURN:g} q 0 {_TURN} {_TURN} {_TURN}"
                    )
                )
                bend = f"q {_TURN} 0 {_TURN} {-_TURN} V {y + _TURN:g} q 0 {-_TURN} {_TURN} {-_TURN}"
                out.append(_rail(f"M {left + part.width:g} {y + drop:g} H {right:g} {bend}"))
            else:
                out.append(_rail(f"M {x:g} {y:g} H {left:g}"))
                out.append(_rail(f"M {left + part.width:g} {y:g} H {x + width:g}"))
            out += part.draw(left, y + drop)
        return out

    return _Piece(width, parts[0].above, drops[-1] + parts[-1].below, draw)


def _around(part: _Piece, note: str) -> _Piece:
    width = max(part.width, len(note) * 6.5) + 16

    def draw(x: float, y: float) -> list[str]:
        inner = x + (width - part.width) / 2
        box = f'x="{x + 2:g}" y="{y - part.above - 4:g}" width="{width - 4:g}" height="{part.above + part.below + 8:g}"'
        rails = [_rail(f"M {x:g} {y:g} H {inner:g}"), _rail(f"M {inner + part.width:g} {y:g} H {x + width:g}")]
        note_at = _note(x + width / 2, y - part.above - 8, note)
        return [f'<rect class="around" {box} rx="8"/>', note_at, *rails, *part.draw(inner, y)]

    return _Piece(width, part.above + 20, part.below + 6, draw)


def _repeated(part: _Piece, pattern: Quantified) -> _Piece:
    back = pattern.most is None or pattern.most > 1
    passed = pattern.least == 0
    note = _times(pattern)
    inner = max(part.width, len(note) * 6.5)
    width = inner + 4 * _TURN
    above = part.above + (_TURN + 8 if passed else 0)
    below = part.below + (_TURN + 20 if back else 16 if note else 0)

    def draw(x: float, y: float) -> list[str]:
        left, right = x + 2 * _TURN, x + width - 2 * _TURN
        at = left + (inner - part.width) / 2
        out = [
            _rail(f"M {x:g} {y:g} H {at:g}"),
            _rail(f"M {at + part.width:g} {y:g} H {x + width:g}"),
            *part.draw(at, y),
        ]
        if passed:
            up = part.above + _TURN
            turn = f"q {_TURN} 0 {_TURN} {-_TURN} V {y - up + _TURN:g} q 0 {-_TURN} {_TURN} {-_TURN} H {right:g}"
            out.append(
                _rail(f"M {x:g} {y:g} {turn} q {_TURN} 0 {_TURN} {_TURN} V {y - _TURN:g} q 0 {_TURN} {_TURN} {_TURN}")
            )
        if back:
            down = part.below + _TURN
            turn = f"q {_TURN} 0 {_TURN} {_TURN} V {y + down - _TURN:g} q 0 {_TURN} {-_TURN} {_TURN} H {left:g}"
            back_on = f"q {-_TURN} 0 {-_TURN} {-_TURN} V {y + _TURN:g} q 0 {-_TURN} {_TURN} {-_TURN}"
            out.append(_rail(f"M {right:g} {y:g} {turn} {back_on}"))
        return [*out, _note(x + width / 2, y + below - 4, note)] if note else out

    return _Piece(width, above, below, draw)


def _times(pattern: Quantified) -> str:
    if pattern.most is None:
        often = f"{pattern.least} or more" if pattern.least > 1 else ""
    elif pattern.most == pattern.least:
        often = f"{pattern.most} times"
    else:
        often = f"{pattern.least} to {pattern.most} times" if pattern.most > 1 else ""
    seldom = "as few as possible" if pattern.reluctant else ""
    return ", ".join(part for part in (often, seldom) if part)
