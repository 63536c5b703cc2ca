"""Following: how far a change of a source reaches into the rows of a plan.

A plan can follow changes where some of its columns hold values of all its sources unchanged, and every operator keeps
rows of different values apart: a filter on those columns then gives the same above the plan as below it. These are the
*keys*. Where a column of times goes through the plan as well, each operator adds how far around a row it looks
(`Node.extents`); the sums along the way to a source say how far a changed row of it reaches, and which of its rows are
needed to compute a stretch of the result again. A plan of row-wise operators alone is *linear*: what it makes of the
changed rows is the change.

What cannot be followed is said with its reason (`NotFollowed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.timeseries.node import Extent, Gathered, Keyed, Node, Ordering, RowWise, Stacked
from headwater.timeseries.operators.join import Join
from headwater.timeseries.operators.time_join import TimeJoin
from headwater.timeseries.operators.values import Values
from headwater.timeseries.sources.source import Source

__all__ = ["Followed", "Leaf", "NotFollowed", "followed", "leaves_of", "with_leaves"]


class NotFollowed(Exception):
    """A plan cannot follow changes; the text says why, for people."""


@dataclass(frozen=True)
class Leaf:
    """A source of a plan: what the keys and the time of the result are called in it, and how far around a row it is
    read.
    """

    node: Node
    keys: Mapping[str, str]
    """Its columns by those of the result."""
    time: str | None = None
    before: int | None = 0
    after: int | None = 0

    @property
    def is_unbounded(self) -> bool:
        """Whether a row of it may touch all rows of its keys."""
        return self.time is None or (self.before is None and self.after is None)

    @property
    def is_constant(self) -> bool:
        """Whether its rows are part of the definition."""
        return isinstance(self.node, Values)


@dataclass(frozen=True)
class Followed:
    """How a plan follows changes: the result's keys and time, and for each source how far it reaches."""

    keys: tuple[str, ...]
    time: str | None
    leaves: tuple[Leaf, ...]
    linear: bool

    def describe(self) -> str:
        """For people: what of the result is computed again where a row of a source changes."""
        if self.linear:
            return "what comes of the changed rows"
        of = f" of their {', '.join(self.keys)}" if self.keys else ""
        moving = [leaf for leaf in self.leaves if not leaf.is_constant]
        if self.time is None or all(leaf.is_unbounded for leaf in moving):
            return f"all rows{of}"
        if any(leaf.time is None or leaf.before is None or leaf.after is None for leaf in moving):
            ahead = all(leaf.time is not None and leaf.after is not None for leaf in moving)
            return f"the rows{of} {'from the change on' if ahead else 'as far as the change reaches'}"
        return f"the rows{of} within reach of the change"


def leaves_of(node: Node) -> Iterator[Node]:
    """The sources of a plan, one for each place that one is read in, in their order."""
    if not node.inputs:
        yield node
    for below in node.inputs:
        yield from leaves_of(below)


def with_leaves(node: Node, make: Callable[[int, Node], Node]) -> Node:
    """The plan over other sources: what ``make`` gives for each by its number."""
    numbers = iter(range(sum(1 for _ in leaves_of(node))))

    def made(one: Node) -> Node:
        if not one.inputs:
            return make(next(numbers), one)
        return one.with_inputs(*[made(below) for below in one.inputs])

    return made(node)


def followed(plan: Node, ordering: Ordering | None) -> Followed:
    """How a plan follows changes of its sources; raises `NotFollowed`."""
    nodes = list(_nodes(plan))
    for node in nodes:
        if isinstance(node, Gathered):
            raise NotFollowed(f"`{node.line()}` looks at all rows")
        if not isinstance(node, RowWise | Keyed | Stacked | Values | Source):
            raise NotFollowed(f"`{node.line()}` cannot follow changes")
    linear = not any(isinstance(node, Keyed) for node in nodes)
    names = plan.schema.names
    given = [ordering.time] if ordering is not None and ordering.time in names else []
    times: list[str | None] = [
        *given,
        *(n for n in names if n not in given and _is_time(plan.schema.field(n).type)),
        None,
    ]
    found = [(time, tuple(_down(plan, {n: n for n in names}, time))) for time in times]
    time, leaves = max(
        found, key=lambda one: sum(2 * (leaf.time is not None) + (leaf.before is not None) for leaf in one[1])
    )
    moving = [leaf for leaf in leaves if not leaf.is_constant]
    if not any(leaf.time is not None for leaf in moving):
        time = None
    keys = tuple(n for n in names if all(_same_key(plan, n, leaf) for leaf in moving))
    if not linear and not keys and any(leaf.is_unbounded for leaf in moving):
        which = next(node for node in nodes if isinstance(node, Keyed))
        raise NotFollowed(
            "a changed row may touch every row of the result: "
            f"no column keeps its series apart through `{which.line()}`"
        )
    leaves = tuple(replace(leaf, keys={n: leaf.keys[n] for n in keys if n in leaf.keys}) for leaf in leaves)
    return Followed(keys, time, leaves, linear)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for below in node.inputs:
        yield from _nodes(below)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_key(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_duration(kind) or pa.types.is_binary(kind))


def _same_key(plan: Node, name: str, leaf: Leaf) -> bool:
    """Whether a column of the result holds values of a source that can be compared with it."""
    if name not in leaf.keys:
        return False
    mine, theirs = plan.schema.field(name).type, leaf.node.schema.field(leaf.keys[name]).type
    whole = pa.types.is_integer(mine) and pa.types.is_integer(theirs)
    return _is_key(mine) and (mine == theirs or whole)


def _down(
    node: Node, keys: dict[str, str], time: str | None, before: int | None = 0, after: int | None = 0
) -> Iterator[Leaf]:
    """The leaves below a node, of whose columns some are the result's."""
    if not node.inputs:
        yield Leaf(node, keys, time, before if time is not None else None, after if time is not None else None)
        return
    extents = node.extents() if isinstance(node, Keyed) else (None,) * len(node.inputs)
    for number, (below, extent) in enumerate(zip(node.inputs, extents, strict=True)):
        taken = _taken(node, number)
        kept = {mine: taken[name] for mine, name in keys.items() if name in taken}
        if isinstance(node, Keyed):
            yield from _through(below, kept, time, before, after, extent)
        else:
            lower = taken.get(time) if time is not None else None
            if lower is not None and node.schema.field(time).type != below.schema.field(lower).type:
                lower = None
            yield from _down(below, kept, lower, before, after)


def _through(
    below: Node,
    keys: dict[str, str],
    time: str | None,
    before: int | None,
    after: int | None,
    extent: Extent | None,
) -> Iterator[Leaf]:
    if extent is None or extent.own != time:
        yield from _down(below, keys, None)
        return
    yield from _down(below, keys, extent.time, _sum(before, extent.before), _sum(after, extent.after))


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _taken(node: Node, number: int) -> dict[str, str]:
    """Columns of a node's output that hold values of a column of one of its inputs, which rows of different values do
    not share.
    """
    below = node.inputs[number]
    if isinstance(node, RowWise):
        found = {}
        for name in below.schema.names:
            mine = node.kept(name)
            if mine is not None:
                found[mine] = name
        return found
    if isinstance(node, Stacked):
        return {n: n for n in node.schema.names if n in below.schema.names}
    assert isinstance(node, Keyed)
    first, mine_keys = node.keys()[0], node.keys()[number]
    if number and not isinstance(node, TimeJoin | Join):
        return {}
    out = node.output_keys()
    if out is None:
        return {}
    return dict(zip(out, mine_keys, strict=True)) if len(out) == len(first) == len(mine_keys) else {}
