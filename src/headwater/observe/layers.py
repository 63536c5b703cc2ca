"""Layers: which box stands in which row of a drawing, and in which order.

The problem: a directed graph is read with ease when all edges point down, few of them cross, and none runs through a
box. The idea is Sugiyama's: every box is given a layer below those of its inputs (the longest path decides, and then a
box that gives more edges than it takes moves down to shorten them); an edge over several layers becomes a chain of
points, one in each, so that it is kept clear of boxes like a box itself; and each layer is sorted by the mean place of
its neighbours, up and down in turns, and two that stand side by side are exchanged where that helps, keeping the order
that had the fewest crossings.

An edge may also come in from the border above (`TOP`) or leave through the one below (`BOTTOM`): that is how a graph
within a group is tied to the one around it. Invariants: an edge leads to a later layer; points and boxes of a layer
are distinct; the same graph gives the same order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["BOTTOM", "TOP", "Box", "Item", "Layers", "Link", "Segment", "in_layers", "topological"]

TOP, BOTTOM = -1, -2
_POINT_WIDTH = 8
_SWEEPS = 24
_PATIENCE = 6  # sweeps without a better order
_TURNS = 4


@dataclass(frozen=True, slots=True)
class Box:
    """What has to be placed: its size, and how far the middle of what shows is left of the middle of all of it."""

    width: int
    height: int
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """An edge from a box (or `TOP`) down to a box (or `BOTTOM`), and where it must leave and arrive, if anywhere.

    Places count from the middle of the box. ``loose`` edges give way to others.
    """

    upper: int
    lower: int
    upper_at: int | None = None
    lower_at: int | None = None
    loose: bool = False


@dataclass(slots=True)
class Item:
    """A box in its layer, or the point of a long edge, whose box is `TOP`."""

    box: int
    layer: int
    width: int
    shift: int = 0


@dataclass(slots=True)
class Segment:
    """The part of a link between two layers that follow each other; the places are fixed ones, or 0 until `spread`."""

    upper: int
    lower: int
    link: int
    upper_at: int | None
    lower_at: int | None


@dataclass(slots=True)
class Layers:
    """Items, the segments between them, and the order of each layer."""

    items: list[Item]
    segments: list[Segment]
    rows: list[list[int]]


def topological(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """The numbers below ``count`` such that every edge leads forward; those behind a cycle are left out.

    >>> topological(3, [(2, 0), (0, 1)])
    [2, 0, 1]
    """
    waiting = [0] * count
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in edges:
        waiting[lower] += 1
        below[upper].append(lower)
    done = [i for i in range(count) if not waiting[i]]
    for i in done:  # grows as it is read
        for j in below[i]:
            waiting[j] -= 1
            if not waiting[j]:
                done.append(j)
    return done


def in_layers(boxes: Sequence[Box], links: Sequence[Link]) -> Layers:
    """Boxes and links in layers, ordered so that few links cross."""
    ranks = _ranks(boxes, links)
    layers = _chained(boxes, links, ranks)
    _first_order(layers)
    _sort(layers)
    return layers


# -- which layer ---------------------------------------------------------------------------------------------------


def _ranks(boxes: Sequence[Box], links: Sequence[Link]) -> list[int]:
    above: list[list[int]] = [[] for _ in boxes]
    below: list[list[int]] = [[] for _ in boxes]
    for link in links:
        if link.upper >= 0 and link.lower >= 0:
            above[link.lower].append(link.upper)
            below[link.upper].append(link.lower)
    order = topological(len(boxes), ((u, v) for v, uppers in enumerate(above) for u in uppers))
    assert len(order) == len(boxes)
    ranks = [0] * len(boxes)
    for i in order:
        ranks[i] = max((ranks[j] + 1 for j in above[i]), default=0)
    from_top = {link.lower for link in links if link.upper == TOP}
    for _ in range(2):
        for i in reversed(order):
            if below[i] and len(below[i]) > len(above[i]) + (i in from_top):
                ranks[i] = min(ranks[j] for j in below[i]) - 1
    return ranks


def _chained(boxes: Sequence[Box], links: Sequence[Link], ranks: Sequence[int]) -> Layers:
    top = int(any(link.upper == TOP for link in links))
    depth = max(ranks, default=0) + top
    items = [Item(i, ranks[i] + top, box.width, box.shift) for i, box in enumerate(boxes)]
    segments: list[Segment] = []
    for number, link in enumerate(links):
        last = depth + 1 if link.lower == BOTTOM else items[link.lower].layer
        at = _point(items, 0) if link.upper == TOP else link.upper
        place = 0 if link.upper == TOP else link.upper_at
        for layer in range(items[at].layer + 1, last + (link.lower == BOTTOM)):
            point = _point(items, layer)
            segments.append(Segment(at, point, number, place, 0))
            at, place = point, 0
        if link.lower != BOTTOM:
            segments.append(Segment(at, link.lower, number, place, link.lower_at))
    rows: list[list[int]] = [[] for _ in range(max((item.layer for item in items), default=-1) + 1)]
    return Layers(items, segments, rows)


def _point(items: list[Item], layer: int) -> int:
    items.append(Item(TOP, layer, _POINT_WIDTH))
    return len(items) - 1


# -- which order ---------------------------------------------------------------------------------------------------


def _first_order(layers: Layers) -> None:
    """Depth first from the outputs up, so that the inputs of a node stand in their own order to begin with."""
    above: list[list[int]] = [[] for _ in layers.items]
    outputs = [True] * len(layers.items)
    for segment in layers.segments:
        above[segment.lower].append(segment.upper)
        outputs[segment.upper] = False
    seen = [False] * len(layers.items)
    for root in (i for i, is_output in enumerate(outputs) if is_output):
        stack = [root]
        while stack:
            i = stack.pop()
            if seen[i]:
                continue
            seen[i] = True
            layers.rows[layers.items[i].layer].append(i)
            stack.extend(reversed(above[i]))


def _sort(layers: Layers) -> None:
    gaps: list[list[Segment]] = [[] for _ in layers.rows]
    up: list[list[Segment]] = [[] for _ in layers.items]
    down: list[list[Segment]] = [[] for _ in layers.items]
    for segment in layers.segments:
        gaps[layers.items[segment.upper].layer].append(segment)
        up[segment.lower].append(segment)
        down[segment.upper].append(segment)
    position = [0.0] * len(layers.items)
    for row in layers.rows:
        _number(row, position)
    best, fewest, patience = [list(row) for row in layers.rows], _all_crossings(layers, gaps, position), _PATIENCE
    for sweep in range(_SWEEPS):
        if not fewest or not patience:
            break
        upward = sweep % 2 == 1
        for row in reversed(layers.rows[:-1]) if upward else layers.rows[1:]:
            if sweep % 4 > 1:
                row.reverse()  # those with the same mean come in the other order
            _by_mean(layers, row, position, down if upward else up, below=upward)
        _swap_neighbours(layers, position, up, down)
        crossings = _all_crossings(layers, gaps, position)
        patience -= 1
        if crossings < fewest:
            best, fewest, patience = [list(row) for row in layers.rows], crossings, _PATIENCE
    layers.rows = best


def _number(row: Sequence[int], position: list[float]) -> None:
    for place, i in enumerate(row):
        position[i] = float(place)


def _place(layers: Layers, position: Sequence[float], i: int, at: int | None) -> float:
    return position[i] + at / (layers.items[i].width + 2) if at else position[i]


def _by_mean(
    layers: Layers, row: list[int], position: list[float], links: Sequence[Sequence[Segment]], *, below: bool
) -> None:
    def mean(i: int) -> float:
        if not links[i]:
            return position[i]
        if below:
            places = [_place(layers, position, s.lower, s.lower_at) - _offset(layers, i, s.upper_at) for s in links[i]]
        else:
            places = [_place(layers, position, s.upper, s.upper_at) - _offset(layers, i, s.lower_at) for s in links[i]]
        return sum(places) / len(places)

    row.sort(key=mean)
    _number(row, position)


def _swap_neighbours(
    layers: Layers, position: list[float], up: Sequence[Sequence[Segment]], down: Sequence[Sequence[Segment]]
) -> None:
    """Exchange two that stand side by side wherever that leaves fewer crossings, until a turn finds no such pair."""
    for _ in range(_TURNS):
        swapped = False
        for row in layers.rows:
            ends = {
                i: (
                    [_place(layers, position, s.upper, s.upper_at) for s in up[i]],
                    [_place(layers, position, s.lower, s.lower_at) for s in down[i]],
                )
                for i in row
            }
            for k in range(len(row) - 1):
                (above, below), (next_above, next_below) = ends[row[k]], ends[row[k + 1]]
                if _gain(above, next_above) + _gain(below, next_below) > 0:
                    row[k], row[k + 1] = row[k + 1], row[k]
                    swapped = True
            _number(row, position)
        if not swapped:
            return


def _gain(left: Sequence[float], right: Sequence[float]) -> int:
    """How many crossings fewer there are when two items, whose edges end at these places, are exchanged.

    >>> _gain([2, 3], [1]), _gain([1], [1, 2])
    (2, -1)
    """
    return sum((a > b) - (a < b) for a in left for b in right)


def _offset(layers: Layers, i: int, at: int | None) -> float:
    return at / (layers.items[i].width + 2) if at else 0.0


def _all_crossings(layers: Layers, gaps: Sequence[Sequence[Segment]], position: Sequence[float]) -> int:
    total = 0
    for gap in gaps:
        places = sorted(
            (_place(layers, position, s.upper, s.upper_at), _place(layers, position, s.lower, s.lower_at)) for s in gap
        )
        total += _crossings(places)
    return total


def _crossings(places: Sequence[tuple[float, float]]) -> int:
    """How many pairs of edges cross, given their upper and lower ends in the order of the upper ones.

    >>> _crossings([(0, 0), (1, 1)]), _crossings([(0, 2), (1, 1), (2, 0)])
    (0, 3)
    """
    passed: list[float] = []
    count = 0
    for _, lower in places:
        at = bisect_right(passed, lower)
        count += len(passed) - at
        passed.insert(at, lower)
    return count
