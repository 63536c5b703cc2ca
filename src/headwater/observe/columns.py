"""Columns: where the boxes of ordered layers stand from left to right, so that edges are straight.

The problem: given the order of each layer, find places such that nothing overlaps and edges bend little. Minimising
the sum of all bends is a linear program; we want it in milliseconds and in a few lines. The idea: edges are taken by
importance (those that lie on the longest paths first, and long ones as a whole), and each that crosses none taken
before is *aligned*: what it connects becomes one rigid column. What remains is to place columns, which have a partial
order: each moves in turn to the median of where its other edges want it, as far as its neighbours let it.

Invariants: items of a layer keep their order and their distance; an aligned edge is exactly vertical; places are whole
numbers, the least of which leaves the leftmost item at 0.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from headwater.observe.layers import TOP, Layers, Link, Segment, topological

__all__ = ["in_columns", "spread", "straight"]

_GAP = 28
_POINT_GAP = 14
_ROUNDS = 24
_PORT_GAP = 22


def straight(layers: Layers, links: Sequence[Link]) -> list[Segment]:
    """The segments that shall be vertical: at most one above and one below each item, and no two that cross."""
    above, below = _lengths(layers)
    place = _order(layers)

    def importance(s: Segment) -> tuple[int, int, int]:
        inner = layers.items[s.upper].box == TOP and layers.items[s.lower].box == TOP
        loose = links[s.link].loose
        return (0 if inner and not loose else 2 if loose else 1, -(above[s.upper] + below[s.lower]), s.link)

    taken: list[list[tuple[int, int]]] = [[] for _ in layers.rows]
    has_above = [False] * len(layers.items)
    has_below = [False] * len(layers.items)
    chosen = []
    for s in sorted(layers.segments, key=importance):
        if has_below[s.upper] or has_above[s.lower]:
            continue
        ends = (place[s.upper], place[s.lower])
        gap = taken[layers.items[s.upper].layer]
        at = bisect_left(gap, ends)
        if (at and gap[at - 1][1] > ends[1]) or (at < len(gap) and gap[at][1] < ends[1]):
            continue
        gap.insert(at, ends)
        has_below[s.upper] = has_above[s.lower] = True
        chosen.append(s)
    return chosen


def spread(layers: Layers, aligned: Sequence[Segment]) -> None:
    """Give every edge that is not fixed a place at its box: side by side in the order of the other ends.

    The one that shall be vertical gets the middle, so that the boxes on a straight path stand exactly below each other.
    """
    place = _order(layers)
    vertical = set(map(id, aligned))
    for downward in (True, False):
        free: dict[int, list[Segment]] = {}
        for s in layers.segments:
            if (s.upper_at if downward else s.lower_at) is None:
                free.setdefault(s.upper if downward else s.lower, []).append(s)
        for i, segments in free.items():
            item = layers.items[i]
            segments.sort(key=lambda s: _end(place, s, lower=downward))
            count = len(segments)
            middle = next((k for k, s in enumerate(segments) if id(s) in vertical), (count - 1) / 2)
            room = item.width // 2 - item.shift - 14
            gap = min(_PORT_GAP, int(room / max(middle, count - 1 - middle, 1))) // 2 * 2
            for k, s in enumerate(segments):
                at = -item.shift + int((k - middle) * gap)
                if downward:
                    s.upper_at = at
                else:
                    s.lower_at = at


def _order(layers: Layers) -> list[int]:
    place = [0] * len(layers.items)
    for row in layers.rows:
        for k, i in enumerate(row):
            place[i] = k
    return place


def _end(place: Sequence[int], s: Segment, *, lower: bool) -> tuple[int, int]:
    return (place[s.lower], s.lower_at or 0) if lower else (place[s.upper], s.upper_at or 0)


def in_columns(layers: Layers, aligned: Sequence[Segment]) -> list[int]:
    """The middle of every item, from the left."""
    column, offset = _columns(layers, aligned)
    count = max(column, default=-1) + 1
    left: list[dict[int, int]] = [{} for _ in range(count)]
    right: list[dict[int, int]] = [{} for _ in range(count)]
    for row in layers.rows:
        for a, b in pairwise(row):
            first, second = layers.items[a], layers.items[b]
            points = (first.box == TOP) + (second.box == TOP)
            room = (first.width + second.width) // 2 + (_GAP if not points else _POINT_GAP)
            apart = offset[a] - offset[b] + room
            p, q = column[a], column[b]
            assert p != q
            left[q][p] = right[p][q] = max(apart, left[q].get(p, -(1 << 30)))
    order = topological(count, ((p, q) for p in range(count) for q in right[p]))
    assert len(order) == count, "aligned edges cross"
    half = [0] * count
    for i, item in enumerate(layers.items):
        half[column[i]] = max(half[column[i]], item.width // 2 - offset[i])
    x = [0.0] * count
    for q in order:
        x[q] = max((x[p] + apart for p, apart in left[q].items()), default=float(half[q]))
    _relax(layers, column, offset, order, left, right, x)
    places = [math.floor(x[column[i]] + 0.5) + offset[i] for i in range(len(layers.items))]
    least = min((p - layers.items[i].width // 2 for i, p in enumerate(places)), default=0)
    return [p - least for p in places]


def _lengths(layers: Layers) -> tuple[list[int], list[int]]:
    """The longest path to every item from above, and from it down."""
    above, below = [0] * len(layers.items), [0] * len(layers.items)
    by_layer = sorted(layers.segments, key=lambda s: layers.items[s.upper].layer)
    for s in by_layer:
        above[s.lower] = max(above[s.lower], above[s.upper] + 1)
    for s in reversed(by_layer):
        below[s.upper] = max(below[s.upper], below[s.lower] + 1)
    return above, below


def _columns(layers: Layers, aligned: Sequence[Segment]) -> tuple[list[int], list[int]]:
    """The column of every item, and how far right of the column's place its middle is."""
    lower_of = {s.upper: s for s in aligned}
    not_first = {s.lower for s in aligned}
    column, offset = [-1] * len(layers.items), [0] * len(layers.items)
    count = 0
    for row in layers.rows:
        for i in row:
            if i in not_first:
                continue
            column[i], at = count, i
            while at in lower_of:
                s = lower_of[at]
                column[s.lower] = count
                offset[s.lower] = offset[at] + (s.upper_at or 0) - (s.lower_at or 0)
                at = s.lower
            count += 1
    return column, offset


def _relax(
    layers: Layers,
    column: Sequence[int],
    offset: Sequence[int],
    order: Sequence[int],
    left: Sequence[dict[int, int]],
    right: Sequence[dict[int, int]],
    x: list[float],
) -> None:
    # Of every column, the other columns it has edges to, and how far right of them it would have to be.
    wishes: list[list[tuple[int, int]]] = [[] for _ in left]
    for s in layers.segments:
        p, q = column[s.upper], column[s.lower]
        if p != q:
            apart = offset[s.upper] + (s.upper_at or 0) - offset[s.lower] - (s.lower_at or 0)
            wishes[q].append((p, apart))
            wishes[p].append((q, -apart))
    for turn in range(_ROUNDS):
        for q in order if turn % 2 else reversed(order):
            if not wishes[q]:
                continue
            wanted = sorted(x[p] + apart for p, apart in wishes[q])
            middle = len(wanted) // 2
            if turn < _ROUNDS // 2:
                at = sum(wanted) / len(wanted)
            else:
                at = wanted[middle] if len(wanted) % 2 else (wanted[middle - 1] + wanted[middle]) / 2
            at = max([at, *(x[p] + apart for p, apart in left[q].items())])
            x[q] = min([at, *(x[p] - apart for p, apart in right[q].items())])
