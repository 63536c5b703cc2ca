"""A chart for a terminal: each curve is a row of blocks, with its range and its last value.

All rows share the axis of times, and the values too, so that rows can be compared. A cell shows the mean of what lies
in it (of a band the middle), and is empty where nothing does.

Invariants: there is a row for each curve, in the order of the legend; no row is wider than the width, as long as that
is at least 40; nothing in it is a control character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.observe.drawn import logged
from headwater.observe.measure import cells, cut_cells, one_line
from headwater.observe.ticks import moment_text, number_text, spread

if TYPE_CHECKING:
    from headwater.observe.drawn import Drawn, DrawnChart

__all__ = ["chart_text"]

_BLOCKS = "▁▂▃▄▅▆▇█"
_LABEL = 24
_LEAST, _MOST = 8, 60


def chart_text(chart: DrawnChart, width: int) -> str:
    """The rows of a chart, in at most ``width`` cells."""
    drawn = tuple(map(logged, chart.drawn)) if chart.scale == "log" else chart.drawn
    times = [t for part in drawn for t in part.times]
    first, last = (min(times), max(times)) if times else (0, 0)
    there = [v for part in drawn for v in part.there]
    low, high = spread(min(there, default=0.0), max(there, default=1.0))
    labels = [cut_cells(one_line(part.label), _LABEL) for part in drawn]
    label_size = max([cells("time"), *map(cells, labels)])
    facts = [_facts(part) for part in chart.drawn]
    room = max(min(width - label_size - max(map(cells, facts), default=0) - 3, _MOST, last - first + 1), _LEAST)
    room = min(room, last - first + 1)
    out = [cut_cells(one_line(chart.title), width)]
    if chart.note:
        out.append(cut_cells(one_line(chart.note), width))
    for part, label, fact in zip(drawn, labels, facts, strict=True):
        blocks = _blocks(part, first, last, room, (low, high))
        out.append(_row(label, label_size, f"{blocks}  {fact}", width))
    ends = [t for part in chart.drawn for t in part.times]
    shown = f"{moment_text(min(ends), chart.axis)} … {moment_text(max(ends), chart.axis)}" if ends else "nothing"
    out.append(_row("time", label_size, shown, width))
    return "\n".join(out)


def _row(label: str, size: int, rest: str, width: int) -> str:
    return cut_cells(f"{label}{' ' * (size - cells(label))} {rest}".rstrip(), width)


def _facts(part: Drawn) -> str:
    there = part.there
    if not there:
        return "no values"
    last = next(v for v in reversed(part.high) if v is not None)
    return f"{number_text(min(there))} … {number_text(max(there))}, last {number_text(last)}"


def _blocks(part: Drawn, first: int, last: int, room: int, values: tuple[float, float]) -> str:
    held: list[list[float]] = [[] for _ in range(room)]
    for time, low, high in zip(part.times, part.low, part.high, strict=True):
        if low is not None and high is not None:
            held[(time - first) * room // (last - first + 1)].append(low / 2 + high / 2)
    return "".join(_block(cell, *values) for cell in held)


def _block(cell: Sequence[float], low: float, high: float) -> str:
    if not cell:
        return " "
    mean = sum(value / len(cell) for value in cell)
    share = (mean / 2 - low / 2) / (high / 2 - low / 2)
    return _BLOCKS[min(max(int(share * len(_BLOCKS)), 0), len(_BLOCKS) - 1)]
