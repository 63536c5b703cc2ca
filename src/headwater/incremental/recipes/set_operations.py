"""INTERSECT and EXCEPT of two streams, by `headwater.incremental.operators.distinct`.

Equal rows have to meet on one shard, so both streams are placed by all their columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.incremental.operators.distinct import Except, Intersect, Weigh

if TYPE_CHECKING:
    from headwater.incremental.circuit.stream import Stream
    from headwater.incremental.operators.node import Node

__all__ = ["difference", "intersection"]


def intersection(left: Stream, right: Stream, *, all: bool = False) -> Stream:  # noqa: A002
    """The rows that both streams have; with ``all``, as often as the one that has them less often."""
    return _placed(left, right, lambda a, b: Intersect([a, b], all=all))


def difference(left: Stream, right: Stream, *, all: bool = False) -> Stream:  # noqa: A002
    """The rows of the first stream that the second does not have; with ``all``, as often as it has them more often."""
    return _placed(left, right, lambda a, b: Except([a, b], all=all))


def _placed(left: Stream, right: Stream, build: Callable[[Node, Node], Weigh]) -> Stream:
    from headwater.incremental.circuit.stream import Stream
    from headwater.incremental.dataflow.vertex import marks_of_all

    inputs = [left.vertex, right.vertex]
    vertex = left.circuit.add(build, inputs, by=[left.columns, right.columns])
    vertex.marks = marks_of_all(inputs)
    return Stream(left.circuit, left.circuit.forgetting(vertex))
