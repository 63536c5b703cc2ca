"""Labels on edges: a place for each where it covers no node, no border of a group and no other label.

An edge offers the middle of its stretches, the first ones first, and each label takes the first place that is free. One
that finds none is left out: the same number stands on its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from headwater.observe.layout import Rect

__all__ = ["Labels"]

_CELL = 80
_CLEAR = 6
_Span = tuple[float, float, float, float]  # left, top, right, bottom


class Labels:
    """What is taken: the nodes, the borders of groups, and the labels placed so far.

    Examples
    --------
    >>> labels = Labels([Rect(0, 0, 100, 40)])
    >>> labels.place([(50, 40), (50, 90)], 30, 12)
    (50.0, 65.0)
    >>> labels.place([(50, 40), (50, 90)], 30, 12) is None
    True
    """

    def __init__(self, nodes: Iterable[Rect], groups: Iterable[Rect] = ()) -> None:
        self._taken: dict[tuple[int, int], list[_Span]] = {}
        for node in nodes:
            self._take((node.x - _CLEAR, node.y, node.right + _CLEAR, node.bottom))
        for group in groups:
            for y in (group.y, group.bottom):
                self._take((group.x, y - 1, group.right, y + 1))

    def place(self, points: Sequence[tuple[int, int]], width: float, height: float) -> tuple[float, float] | None:
        """The middle of a label of this size on the line through the points; None where there is no room."""
        for x, y in _places(points, height):
            span = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            if not any(_overlap(span, other) for cell in _cells(span) for other in self._taken.get(cell, ())):
                self._take(span)
                return x, y
        return None

    def _take(self, span: _Span) -> None:
        for cell in _cells(span):
            self._taken.setdefault(cell, []).append(span)


def _places(points: Sequence[tuple[int, int]], height: float) -> Iterator[tuple[float, float]]:
    stretches = [(p, q) for p, q in pairwise(points) if abs(p[1] - q[1]) > height + 8]
    for (x0, y0), (x1, y1) in stretches:
        yield (x0 + x1) / 2, (y0 + y1) / 2
    for (x0, y0), (x1, y1) in stretches:
        # Where the curve is after one and two thirds of its time.
        for down, across in ((10 / 27, 7 / 27), (17 / 27, 20 / 27)):
            yield round(x0 + (x1 - x0) * across, 1), round(y0 + (y1 - y0) * down, 1)


def _cells(span: _Span) -> Iterator[tuple[int, int]]:
    left, top, right, bottom = (int(edge // _CELL) for edge in span)
    for column in range(left, right + 1):
        for row in range(top, bottom + 1):
            yield column, row


def _overlap(a: _Span, b: _Span) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
