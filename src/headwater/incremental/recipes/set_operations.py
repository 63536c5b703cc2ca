"""INTERSECT and EXCEPT of two streams, by `headwater.incremental.operators.distinct`.

Equal rows have to meet on one shard, so both streams are placed by all their columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.incremental.operators.distinct import Except, Intersect, Weigh

if TYPE_CHECKING:
    from headwater.incremental.operators.node import Node
    from headwater.incremental.recipes.row_stream import S

__all__ = ["difference", "intersection"]


def intersection(left: S, right: S, *, all: bool = False) -> S:  # noqa: A002
    """The rows that both streams have; with ``all``, as often as the one that has them less often."""
    return _placed(left, right, lambda a, b: Intersect([a, b], all=all))


def difference(left: S, right: S, *, all: bool = False) -> S:  # noqa: A002
    """The rows of the first stream that the second does not have; with ``all``, as often as it has them more often."""
    return _placed(left, right, lambda a, b: Except([a, b], all=all))


def _placed(left: S, right: S, build: Callable[[Node, Node], Weigh]) -> S:
    from headwater.incremental.dataflow.vertex import marks_of_all

    inputs = [left.vertex, right.vertex]
    vertex = left.circuit.add(build, inputs, by=[left.columns, right.columns])
    vertex.marks = marks_of_all(inputs)
    return left.at(left.circuit.forgetting(vertex))
