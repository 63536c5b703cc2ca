"""Between: ``x BETWEEN lo AND hi`` across a join, found among what is left of its condition.

Rows that meet by an interval would all have to meet each other without a key. An interval join reads only the slices
that can match (`headwater.incremental.operators.interval_join`). The condition itself is asked of the pairs all the
same, so bounds may be strict, and one more condition more or less does no harm. The ends are computed for each row by
itself, as the keys of a join are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.layout import Order, kind_of
from headwater.incremental.operators.interval_join import CLASS, IntervalJoin, Lengths
from headwater.incremental.planning.equalities import conjunction, parts_of_conjunction
from headwater.incremental.planning.shape import keys_of
from headwater.incremental.recipes.joins import Sides
from headwater.sql.nodes import Call, Node
from headwater.sql.plan import Attribute, Filter, Join, Plan
from headwater.sql.plan.rebuilding import with_children

__all__ = ["Between", "between", "interval_pairs", "with_intervals"]

_MIRRORED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class Between:
    """A point of one side between two values of the other; ``on_left`` if the point is of the left side."""

    point: Node
    low: Node
    high: Node
    on_left: bool


def between(rest: Sequence[Node], left: Sequence[Attribute], right: Sequence[Attribute]) -> Between | None:
    """The first interval in a condition that has both ends."""
    sides = [{a.key for a in side} for side in (left, right)]
    lows: dict[tuple[Node, bool], Node] = {}
    highs: dict[tuple[Node, bool], Node] = {}
    for part in rest:
        if not isinstance(part, Call) or part.op not in _MIRRORED:
            continue
        for op, (point, end) in ((part.op, part.args), (_MIRRORED[part.op], part.args[::-1])):
            if not _is_measured(point.dtype) or point.dtype != end.dtype:
                continue
            for which in (0, 1):
                of_point, of_end = keys_of(point), keys_of(end)
                if of_point and of_end and of_point <= sides[which] and of_end <= sides[1 - which]:
                    bounds = lows if op in (">", ">=") else highs
                    bounds.setdefault((point, which == 0), end)
    for (point, on_left), low in lows.items():
        if (point, on_left) in highs:
            return Between(point, low, highs[point, on_left], on_left)
    return None


def with_intervals(plan: Plan) -> Plan:
    """The same plan with conditions above inner joins in them, where they are the other end of an interval."""
    plan = with_children(plan, tuple(map(with_intervals, plan.children)))
    if not isinstance(plan, Filter) or not isinstance(plan.child, Join) or plan.child.kind not in ("inner", "cross"):
        return plan
    join = plan.child
    own = parts_of_conjunction(join.condition)
    both = [*own, *parts_of_conjunction(plan.condition)]
    sides = join.left.output, join.right.output
    if between(own, *sides) is not None or between(both, *sides) is None:
        return plan
    return Join("inner", join.left, join.right, conjunction(both))


def _is_measured(dtype: pa.DataType) -> bool:
    return kind_of(dtype) == "word" and not pa.types.is_boolean(dtype) and not pa.types.is_decimal(dtype)


def interval_pairs(sides: Sides[Stream], point: str, low: str, high: str, *, on_left: bool) -> Stream:
    """The pairs of two sides with equal keys in which a point is within an interval."""
    circuit = sides.left.circuit
    left_columns, right_columns = list(sides.left_names.items()), sides.new_right
    if on_left:
        spans, times, mine, theirs = sides.right, sides.left, sides.theirs, sides.mine
        of_spans, of_times = right_columns, left_columns
    else:
        spans, times, mine, theirs = sides.left, sides.right, sides.mine, sides.theirs
        of_spans, of_times = left_columns, right_columns
    measured = circuit.add(lambda s: Lengths(s, low, high), [spans.vertex])
    begins = [Order(low)]
    kept = [high, *(c for c, _ in of_spans)]
    a = circuit.arranged(measured, [*mine, CLASS], begins, columns=kept, placed_by=len(mine))
    b = circuit.arranged(times.vertex, theirs, [Order(point)], columns=[c for c, _ in of_times])
    vertex = circuit.add(lambda x, y: IntervalJoin(x, y, of_spans, of_times, hi=high), [a, b])
    return Stream(circuit, vertex)
