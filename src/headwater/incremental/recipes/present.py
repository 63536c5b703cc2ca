"""Present: the rows that are there, of a stream in which rows may be taken away before they come.

Linear operators do not mind weights below zero: sums add them up, and joins multiply. But whoever asks whether a key
has rows, or keeps a place in an order (outer joins, the least value, the first rows of a key, a quantile, the match of
an as-of join), would take rows that are owed for rows that are there. So behind `minus` and the like they are given the
rows of positive weight, each as often as its weight says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.incremental.operators.distinct import Weigh

if TYPE_CHECKING:
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.operators.distinct import Weights
    from headwater.incremental.operators.node import Node
    from headwater.incremental.recipes.row_stream import S

__all__ = ["Present", "present", "without_partners"]


class Present(Weigh):
    """The rows of positive weight."""

    def __init__(self, source: Node) -> None:
        super().__init__([source], _positive, label="present", by_words=True)


def present(stream: S) -> S:
    """The stream itself, or if its weights may be below zero, those of its rows that are there."""
    if not stream.vertex.signed:
        return stream

    def made() -> Vertex:
        vertex = stream.circuit.add(Present, [stream.vertex], by=[stream.columns])
        vertex.marks = stream.vertex.marks
        vertex.placed_by = stream.circuit.placement(stream.vertex, stream.columns)
        return stream.circuit.forgetting(vertex)

    return stream.at(stream.circuit.once(("present", stream.vertex.id), made))


def without_partners(rows: S, partners: S) -> S:
    """The rows less some of them: nothing is taken away that is not there.

    They are taken away where the partners lie, so that what is left is placed as they are.
    """
    placed = partners.vertex.placed_by
    found = rows._sum([partners.negate()], by=placed or None)
    found.vertex.signed = rows.vertex.signed
    return found


def _positive(weights: Weights) -> Weights:
    return np.asarray(np.maximum(weights[:, 0], 0))
