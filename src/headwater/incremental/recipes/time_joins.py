"""Joins on time as recipes: as-of joins, joins within a span, and joins with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from headwater.base.errors import NotFoundError
from headwater.base.spans import distance
from headwater.incremental.layout import Order
from headwater.incremental.operators.asof import AsOf, Direction
from headwater.incremental.operators.interval_join import CLASS, IntervalJoin, Lengths
from headwater.incremental.operators.range_join import RangeJoin
from headwater.incremental.operators.settled import Below
from headwater.incremental.operators.watermark import Mark
from headwater.incremental.recipes.asof_settled import settle
from headwater.incremental.recipes.joins import Sides, named_sides
from headwater.incremental.recipes.present import present
from headwater.incremental.recipes.row_stream import Length, S
from headwater.incremental.recipes.zero_keys import normalised

__all__ = ["asof_joined", "interval_joined", "range_joined"]

On = str | tuple[str, str]


def asof_joined(
    left: S,
    right: S,
    on: On,
    *,
    by: Sequence[str | tuple[str, str]],
    direction: Direction,
    tolerance: Length | None,
    strict: bool,
    how: Literal["inner", "left"],
    ties: Sequence[Order],
    suffix: str,
) -> S:
    """See `Stream.join_asof`."""
    mine, theirs = _times(left, right, on)
    for tie in ties:
        _known(right, tie.column, "right")
    sides = _normalised(named_sides(present(left), present(right), by, suffix))
    circuit = left.circuit
    a = circuit.arranged(sides.left.vertex, sides.mine, [Order(mine)])
    b = circuit.arranged(sides.right.vertex, sides.theirs, [Order(theirs), *ties])
    left_columns = list(sides.left_names.items())
    vertex = circuit.add(
        lambda x, y: AsOf(
            x,
            y,
            left_columns,
            sides.new_right,
            direction=direction,
            tolerance=distance(tolerance),
            strict=strict,
            how=how,
        ),
        [a, b],
    )
    settle(vertex, sides, (mine, theirs))
    return left.at(vertex)


def range_joined(
    left: S,
    right: S,
    on: On,
    *,
    by: Sequence[str | tuple[str, str]],
    below: Length | None,
    above: Length | None,
    suffix: str,
) -> S:
    """See `Stream.join_range`."""
    mine, theirs = _times(left, right, on)
    sides = _normalised(named_sides(left, right, by, suffix))
    circuit = left.circuit
    a = circuit.arranged(sides.left.vertex, sides.mine, [Order(mine)])
    b = circuit.arranged(sides.right.vertex, sides.theirs, [Order(theirs)])
    left_columns = list(sides.left_names.items())
    vertex = circuit.add(
        lambda x, y: RangeJoin(x, y, left_columns, sides.new_right, below=distance(below), above=distance(above)),
        [a, b],
    )
    node = vertex.node
    assert isinstance(node, RangeJoin)
    x, y = left.vertex.marks.get(mine), right.vertex.marks.get(theirs)
    one = y.moved(partial(_less, node.reach[1])) if y is not None and node.reach[1] is not None else None
    two = x.moved(partial(_less, node.reach[0])) if x is not None and node.reach[0] is not None else None
    vertex.needs = (None if one is None else Below(mine, one), None if two is None else Below(theirs, two))
    if x is not None and one is not None:
        vertex.marks |= {n: Mark.both(x, one) for c, n in left_columns if c == mine}
    if y is not None and two is not None:
        vertex.marks |= {n: Mark.both(y, two) for c, n in sides.new_right if c == theirs}
    return left.at(vertex)


def interval_joined(
    left: S,
    right: S,
    between: tuple[str, str],
    time: str,
    *,
    by: Sequence[str | tuple[str, str]],
    suffix: str,
) -> S:
    """See `Stream.join_between`."""
    lo, hi = between
    for name in (lo, hi):
        _known(left, name, "left")
    _known(right, time, "right")
    sides = _normalised(named_sides(left, right, by, suffix))
    circuit = left.circuit
    measured = circuit.add(lambda s: Lengths(s, lo, hi), [sides.left.vertex])
    a = circuit.arranged(measured, [*sides.mine, CLASS], [Order(lo)], placed_by=len(sides.mine))
    b = circuit.arranged(sides.right.vertex, sides.theirs, [Order(time)])
    left_columns = list(sides.left_names.items())
    vertex = circuit.add(lambda x, y: IntervalJoin(x, y, left_columns, sides.new_right, hi=hi), [a, b])
    x, y = left.vertex.marks.get(lo), right.vertex.marks.get(time)
    vertex.needs = (None if y is None else Below(hi, y), None if x is None else Below(time, x))
    return left.at(vertex)


def _normalised(sides: Sides[S]) -> Sides[S]:
    left, mine = normalised(sides.left, sides.mine)
    right, theirs = normalised(sides.right, sides.theirs)
    return replace(sides, left=left, right=right, mine=mine, theirs=theirs)


def _less(distance: int, value: int) -> int:
    return value - distance


def _times(left: S, right: S, on: On) -> tuple[str, str]:
    mine, theirs = (on, on) if isinstance(on, str) else on
    _known(left, mine, "left")
    _known(right, theirs, "right")
    return mine, theirs


def _known(stream: S, name: str, side: str) -> None:
    if name not in stream.columns:
        raise NotFoundError.column(name, stream.columns, where=f"the {side} side of the join")
