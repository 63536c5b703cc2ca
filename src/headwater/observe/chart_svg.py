"""A picture of a chart: one SVG document, in the colours and letters of the graphs.

Above the plot stand the title, a note and the legend; left of it the numbers, below it the times, in two lines where a
tick says what it is part of. A line breaks at gaps; what stands alone between two of them is a dot, so that it is seen.
Bars stand side by side and begin at zero, and bands are filled. After eight curves the colours come again, and the
lines are dashed.

Invariants: the document is well-formed whatever the texts are; everything that is drawn of the data lies inside the
frame; no text is wider than its room; the same chart gives the same document, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from headwater.observe.drawn import DECADE, logged
from headwater.observe.measure import cut, one_line, text_width
from headwater.observe.palette import CURVES
from headwater.observe.ticks import Tick, log_ticks, moment_text, number_text, number_ticks, spread, time_ticks

if TYPE_CHECKING:
    from headwater.observe.drawn import Drawn, DrawnChart

__all__ = ["draw_chart"]

_SMALL, _TITLE = 11, 16
_MARGIN, _LEGEND_LINE = 20, 19
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
_MOST_NAMED, _LABEL_ROOM = 24, 220

_STYLE = """\
.hw-chart{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.hw-chart .title{font-size:16px;font-weight:600}
.hw-chart .small{font-size:11px;font-variant-numeric:tabular-nums}
.hw-chart .end{text-anchor:end}
.hw-chart .middle{text-anchor:middle}
.hw-chart .grid{stroke-width:1}
.hw-chart .curve{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}
.hw-chart .band{fill-opacity:.22}
.hw-chart .bar{fill-opacity:.75}
.hw-chart .paper{fill:#ffffff}
.hw-chart .ink{fill:#1a212b}
.hw-chart .dim{fill:#3c4554}
.hw-chart .grid{stroke:#e4e8ee}
.hw-chart .axis{stroke:#98a3b3}
@media (prefers-color-scheme:dark){
.hw-chart .paper{fill:#12161c}
.hw-chart .ink{fill:#f1f4f8}
.hw-chart .dim{fill:#c0c8d3}
.hw-chart .grid{stroke:#262d36}
.hw-chart .axis{stroke:#75818f}
}"""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where data is drawn, and which data: pixels of times and of values."""

    left: int
    top: int
    right: int
    bottom: int
    first: int
    last: int
    low: float
    high: float

    def x(self, time: float) -> float:
        share = (time - self.first) / (self.last - self.first)
        return min(max(self.left + share * (self.right - self.left), self.left), self.right)

    def y(self, value: float) -> float:
        # By halves: the range may be wider than the widest number.
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return min(max(self.bottom - share * (self.bottom - self.top), self.top), self.bottom)


def draw_chart(chart: DrawnChart, width: int, height: int) -> str:
    """The picture of a chart, as a text."""
    room = width - 2 * _MARGIN
    legend = _legend(chart.drawn, room)
    lines = 1 + max((line for line, *_ in legend), default=-1)
    note = one_line(chart.note)
    top = _MARGIN + 22 + (18 if note else 0) + lines * _LEGEND_LINE + 8
    is_log = chart.scale == "log"
    drawn = tuple(map(logged, chart.drawn)) if is_log else chart.drawn
    low, high = _values(drawn)
    bottom = max(height - _MARGIN - 30, top + 40)
    numbers = (log_ticks if is_log else number_ticks)(low, high, max((bottom - top) // 32, 4))
    widest = max((text_width(t.text, _SMALL) for t in numbers), default=0.0)
    left = _MARGIN + min(math.ceil(widest) + 8, width // 3)
    frame = _Frame(left, top, width - _MARGIN, bottom, *_times(drawn), low, high)
    tall = bottom + 30 + _MARGIN
    label = escape(one_line(chart.title)[:400])
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hw-chart" role="img" aria-label="{label}"',
        f'width="{width}" height="{tall}" viewBox="0 0 {width} {tall}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{tall}" rx="10"/>',
        _text("title ink", _MARGIN, _MARGIN + 14, cut(one_line(chart.title), _TITLE, room, bold=True)),
        _text("small dim", _MARGIN, _MARGIN + 32, cut(note, _SMALL, room)) if note else "",
        *_legend_drawn(legend, _MARGIN + 22 + (18 if note else 0) + 13),
        *_axes(frame, numbers, chart),
        *_parts(chart, drawn, frame),
        "</svg>",
    ]
    return "\n".join(part for part in out if part) + "\n"


def _values(drawn: Sequence[Drawn]) -> tuple[float, float]:
    """The range of the axis of numbers: of what is there, and zero where there are bars, with a little room."""
    there = [v for part in drawn for v in part.there]
    if any(part.kind == "bars" for part in drawn):
        there.append(0.0)
    low, high = spread(min(there, default=0.0), max(there, default=1.0))
    room = (high / 2 - low / 2) / 12.5
    floor, ceiling = (0.0 if edge == 0 and there else None for edge in (low, high))
    return max(low - room, -1.7e308) if floor is None else 0.0, min(high + room, 1.7e308) if ceiling is None else 0.0


def _times(drawn: Sequence[Drawn]) -> tuple[int, int]:
    """The first and the last time; one alone gets room on both sides, and so do bars."""
    times = [t for part in drawn if part.times for t in (part.times[0], part.times[-1])] or [0, 1]
    first, last = min(times), max(times)
    bars = _spacing(drawn)
    room = max(bars // 2, 1) if bars else 0
    return (first - room, last + room) if room or first < last else (first - 1, last + 1)


def _spacing(drawn: Sequence[Drawn]) -> int:
    """How far apart bars are: the least distance there is; 0 without bars."""
    times = sorted({t for part in drawn if part.kind == "bars" for t in part.times})
    return min((b - a for a, b in pairwise(times)), default=1) if times else 0


# -- around it -----------------------------------------------------------------------------------------------------


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _look(place: int) -> tuple[str, str]:
    """The colour and the dashes of the n-th curve."""
    return CURVES[place % len(CURVES)], _DASHES[place // len(CURVES) % len(_DASHES)]


def _legend(drawn: Sequence[Drawn], room: int) -> list[tuple[int, int, int, str]]:
    """For each entry its line, its place on it, which curve it is, and its text."""
    found, line, x = [], 0, 0
    for k, part in enumerate(drawn[:_MOST_NAMED]):
        more = len(drawn) - _MOST_NAMED
        text = f"and {more} more" if more > 0 and k == _MOST_NAMED - 1 else one_line(part.label)
        text = cut(text, _SMALL, min(_LABEL_ROOM, room - 24))
        wide = 22 + math.ceil(text_width(text, _SMALL))
        if x and x + wide > room:
            line, x = line + 1, 0
        found.append((line, x, k, text))
        x += wide + 16
    return found


def _legend_drawn(legend: Sequence[tuple[int, int, int, str]], top: int) -> Iterator[str]:
    for line, x, k, text in legend:
        colour, dashes = _look(k)
        at = _MARGIN + x, top + line * _LEGEND_LINE
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield f'<path d="M{at[0]} {at[1] - 4}h16" stroke="{colour}" stroke-width="3"{dashed}/>'
        yield _text("small dim", at[0] + 22, at[1], text)


def _axes(frame: _Frame, numbers: Sequence[Tick], chart: DrawnChart) -> Iterator[str]:
    for tick in numbers:
        y = frame.y(tick.at)
        kind = "axis" if tick.at == 0 and chart.scale == "linear" else "grid"
        yield f'<path class="grid {kind}" d="M{frame.left} {y:.1f}H{frame.right}"/>'
        yield _text("small dim end", frame.left - 8, round(y + 4, 1), cut(tick.text, _SMALL, frame.left - _MARGIN - 6))
    yield f'<path class="axis grid" d="M{frame.left} {frame.bottom}H{frame.right}"/>'
    most = max((frame.right - frame.left) // 96, 2)
    until = 0.0
    for tick in _time_ticks(frame, chart, most):
        x = frame.x(tick.at)
        yield f'<path class="axis grid" d="M{x:.1f} {frame.bottom}v4"/>'
        half = max(text_width(t, _SMALL) for t in (tick.text, tick.context)) / 2
        # A text keeps to the picture, and off the one before.
        middle = min(max(x, _MARGIN / 2 + half), frame.right + _MARGIN / 2 - half)
        if middle - half >= until:
            until = middle + half + 4
            yield _text("small dim middle", round(middle, 1), frame.bottom + 17, tick.text)
            if tick.context:
                yield _text("small ink middle", round(middle, 1), frame.bottom + 31, tick.context)


def _time_ticks(frame: _Frame, chart: DrawnChart, most: int) -> list[Tick]:
    if chart.scale == "linear":
        return time_ticks(frame.first, frame.last, chart.axis, most)
    found = log_ticks(frame.first / DECADE, frame.last / DECADE, most)
    return [Tick(tick.at * DECADE, tick.text) for tick in found]


# -- the data ------------------------------------------------------------------------------------------------------


def _parts(chart: DrawnChart, drawn: Sequence[Drawn], frame: _Frame) -> Iterator[str]:
    """Bands lie below bars, and those below lines and points. ``drawn`` are the chart's parts on its scale."""
    bars = [k for k, part in enumerate(drawn) if part.kind == "bars"]
    space = _spacing(drawn)
    for kinds in (("band",), ("bars",), ("line", "points")):
        for k, part in enumerate(drawn):
            if part.kind not in kinds:
                continue
            if part.kind == "bars":
                shapes = _bars(part, frame, k, space, bars.index(k), len(bars))
            else:
                shapes = {"band": _band, "line": _line, "points": _points}[part.kind](part, frame, k)
            yield f"<g><title>{escape(_tooltip(chart.drawn[k], chart))}</title>{''.join(shapes)}</g>"


def _tooltip(part: Drawn, chart: DrawnChart) -> str:
    lines = [one_line(part.label)]
    if there := part.there:
        lines.append(f"{len(part.times):,} points, {number_text(min(there))} … {number_text(max(there))}")
        lines.append(f"{moment_text(part.times[0], chart.axis)} … {moment_text(part.times[-1], chart.axis)}")
    return "\n".join(lines)


def _stretches(part: Drawn) -> Iterator[list[int]]:
    """The places of values without a gap between them."""
    held: list[int] = []
    for k, value in enumerate(part.low):
        if value is not None:
            held.append(k)
        elif held:
            yield held
            held = []
    if held:
        yield held


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _places(
    part: Drawn, frame: _Frame, which: Sequence[int], values: Sequence[float | None]
) -> list[tuple[float, float]]:
    found = []
    for k in which:
        value = values[k]
        assert value is not None, "a stretch has no gaps"
        found.append((frame.x(part.times[k]), frame.y(value)))
    return found


def _line(part: Drawn, frame: _Frame, k: int) -> Iterator[str]:
    colour, dashes = _look(k)
    paths = []
    for stretch in _stretches(part):
        points = _places(part, frame, stretch, part.low)
        if len(points) == 1:
            yield _dot(*points[0], colour)
        else:
            paths.append(_path(points))
    if paths:
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield f'<path class="curve" stroke="{colour}"{dashed} d="{"".join(paths)}"/>'


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>'


def _points(part: Drawn, frame: _Frame, k: int) -> Iterator[str]:
    for stretch in _stretches(part):
        for x, y in _places(part, frame, stretch, part.low):
            yield _dot(x, y, _look(k)[0])


def _bars(part: Drawn, frame: _Frame, k: int, space: int, place: int, count: int) -> Iterator[str]:
    """Bars of the width that their neighbours leave, of several curves side by side."""
    whole = max(0.8 * (frame.right - frame.left) * (space / (frame.last - frame.first)), 1.0)
    wide, zero = max(whole / count, 0.6), frame.y(0.0)
    for stretch in _stretches(part):
        for x, y in _places(part, frame, stretch, part.low):
            begin = min(max(x - whole / 2 + place * whole / count, frame.left), frame.right - wide)
            top, tall = min(y, zero), max(abs(y - zero), 0.5)
            top = min(top, frame.bottom - tall)
            place_and_size = f'x="{begin:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
            yield f'<rect class="bar" fill="{_look(k)[0]}" {place_and_size}/>'


def _band(part: Drawn, frame: _Frame, k: int) -> Iterator[str]:
    colour, _ = _look(k)
    for stretch in _stretches(part):
        above, below = _places(part, frame, stretch, part.high), _places(part, frame, stretch, part.low)
        if len(stretch) == 1:
            (x, top), (_, bottom) = above[0], below[0]
            yield f'<path class="curve" stroke="{colour}" stroke-opacity=".4" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'
        else:
            yield f'<path class="band" fill="{colour}" d="{_path([*above, *reversed(below)])}Z"/>'
