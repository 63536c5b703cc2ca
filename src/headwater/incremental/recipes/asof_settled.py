"""What an as-of join does not look at again, and the marks of its rows.

Let ``x`` and ``y`` be the marks of the left and of the right: coming rows, and rows that are taken back, are not below
them. A left row at ``l`` is looked at when a change of the right touches it, and a right row when somebody asks for a
match: a changed left row (``l >= x``) or one that is touched. So what is touched decides both sides, and without ``y``
everything may be.

==========================  =============================  ==========================================
direction                   left rows that are touched     right rows that are asked for
==========================  =============================  ==========================================
backward                    ``l >= y``                     the last at or before ``min(x, y)``, and after
backward, tolerance ``t``   ``l >= y``                     from ``min(x, y) - t``
forward                     those without a match below y  the last below ``min(x, y)``, and after
forward, ``t``              ``l >= y - t``                 from ``min(x, y - t)``
nearest                     the same, unless it is nearer  the last below ``min(x, y)``, and after
nearest, ``t``              ``l >= y - t``                 from ``min(x, y - t) - t``
==========================  =============================  ==========================================

Forward, the last right row below ``y`` ends what a coming one touches, so it stays although nobody is given it. Nearest
and strict, a left row at the very time of that last row is given the one before, so that stays too. A tie is decided by
the right's order, and the last in it is what stays.

The left time of a row of the output is that of a changed or a touched left row. The right time is the match's: forward,
what differs between two matches begins at ``y``; with a tolerance it is near the left time; else it may be any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headwater.incremental.operators.asof import AsOf
from headwater.incremental.operators.settled import Below, Newest, Settled
from headwater.incremental.operators.watermark import Mark

if TYPE_CHECKING:
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.layout import Layout
    from headwater.incremental.recipes.joins import Sides
    from headwater.incremental.recipes.row_stream import S
    from headwater.incremental.sweep import Gone

__all__ = ["Matched", "settle"]


@dataclass(frozen=True, slots=True)
class Matched(Settled):
    """Rows of the left whose match no coming row of the right can change."""

    nodes: Sequence[AsOf]

    def gone(self, layout: Layout, shard: int, least: int) -> Gone:
        return self.nodes[shard].matched(least)

    def __str__(self) -> str:
        return f"below {self.column} what is matched"


def settle(vertex: Vertex, sides: Sides[S], times: tuple[str, str]) -> None:
    """Give the vertex of an as-of join what it needs of its two sides, and the marks of its columns."""
    nodes = [node for node in vertex.nodes if isinstance(node, AsOf)]
    node = nodes[0]
    left, right = sides.left.vertex.marks, sides.right.vertex.marks
    mine, theirs = times
    x, y = left.get(mine), right.get(theirs)
    pairs = zip(sides.mine, sides.theirs, strict=True)
    keys = [(a, b, left.get(a), right.get(b)) for a, b in pairs]
    for a, b, one, two in keys:
        if one is not None and two is not None:
            names = [sides.left_names[a], *(n for c, n in sides.new_right if c == b)]
            vertex.marks |= dict.fromkeys(names, Mark.both(one, two))
    if y is None:
        vertex.needs = _by_key(keys)
        return
    ahead = node.direction != "backward"
    within = node.tolerance
    touched = y if not ahead else None if within is None else y.moved(partial(_less, within))
    of_left = Matched(mine, y, nodes) if touched is None else Below(mine, touched)
    if x is None:
        vertex.needs = (of_left, None)
        return
    given = None if touched is None else Mark.both(x, touched)
    asked = None if given is None or within is None else given.moved(partial(_less, within))
    if given is None or asked is None:
        newest = 2 if node.strict and node.direction == "nearest" else 1
        vertex.needs = (of_left, Newest(theirs, Mark.both(x, y), newest))
    else:
        vertex.needs = (of_left, Below(theirs, given if node.direction == "forward" else asked))
    if given is not None:
        vertex.marks[sides.left_names[mine]] = given
    matched = Mark.both(x, y) if node.direction == "forward" else asked
    if matched is not None:
        vertex.marks |= {n: matched for c, n in sides.new_right if c == theirs}


def _by_key(keys: Sequence[tuple[str, str, Mark | None, Mark | None]]) -> tuple[Settled | None, Settled | None]:
    """What the marks of key columns allow where those of the times do not."""
    for a, b, one, two in keys:
        if two is not None:
            return Below(a, two), None if one is None else Below(b, Mark.both(one, two))
    return None, None


def _less(distance: int, value: int) -> int:
    return value - distance
