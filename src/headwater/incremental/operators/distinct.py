"""Distinct and set operations: rows whose weight is a function of the weights they come with.

DISTINCT, UNION, INTERSECT and EXCEPT, with and without ALL, look at each row alone: how often does each input have it?
So one trace has for each row a weight for each input, and a step looks up the rows that changed and no others: their
weight changes by ``f(new) - f(old)``. Three inputs cost one trace, not two operators with two traces each.

Rows are compared as Spark does it: nulls are equal to each other, zeros of floats too, and NaNs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import SchemaError
from headwater.incremental.aggregates.tally import float_words, normalised
from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.partitions import Partitions
from headwater.incremental.run import Run
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["Distinct", "Except", "Intersect", "Union", "Weigh"]

Weights = npt.NDArray[np.int64]


class Weigh(Node):
    """The rows of several inputs, each with a weight that is a function of its weights in them.

    Parameters
    ----------
    sources : sequence of Node
        with columns of the same types; the names are those of the first
    weigh : callable
        takes an array [rows, inputs] and gives the weight of each row; of zeros it has to give zero
    by_words : bool
        are rows equal only if their very words are, so that zeros of both signs stay what they are?
    """

    kind: ClassVar[Kind] = "cogroup"

    def __init__(
        self,
        sources: Sequence[Node],
        weigh: Callable[[Weights], Weights],
        *,
        label: str,
        detail: str = "",
        sql: str = "",
        by_words: bool = False,
    ) -> None:
        first = sources[0].layout.schema
        for source in sources[1:]:
            _check_types(first, source.layout.schema, label)
        nullable = [any(s.layout.schema.field(i).nullable for s in sources) for i in range(len(first))]
        schema = pa.schema([f.with_nullable(n) for f, n in zip(first, nullable, strict=True)])
        super().__init__(sources, Layout(schema), label=label, detail=detail, sql=sql)
        self._weigh = weigh
        self._whole = Layout(schema, keys=len(schema), weights=len(sources))
        self._floats = float_words(self._whole, 0 if by_words else len(schema))
        pairs = [(i, i) for i in range(len(schema))]
        self._movings = [Moving(s.layout, self._whole, pairs, weight=k) for k, s in enumerate(sources)]
        self.trace = Trace(self._whole)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        parts = []
        for delta, moving in zip(deltas, self._movings, strict=True):
            parts.append(self._moved(delta, moving))
        delta = concatenate(parts, self._whole).consolidate()
        old = self.trace.weights(delta)
        change = self._weigh(old + delta.rows[:, self._whole.payload :]) - self._weigh(old)
        self.trace.stage(delta)
        return self._weighed(delta, change)

    def _moved(self, delta: ZSet, moving: Moving) -> ZSet:
        return normalised(ZSet(self._whole, moving.moved(delta.rows), delta.owners), self._floats)

    def _weighed(self, delta: ZSet, change: Weights) -> ZSet:
        """The rows of a change, with the change of their weights."""
        payload = self._whole.payload
        at = np.flatnonzero(change)
        rows = np.empty((len(at), self.layout.width), dtype=np.int64)
        rows[:, :-1] = delta.rows[at, :payload]
        rows[:, -1] = change[at]
        return ZSet(self.layout, rows, delta.owners)

    # -- a table at once -------------------------------------------------------------------------------------------

    def loading(self, expected: int) -> Partitions:
        """What whole tables are put into, each as `counted` gives it; `loaded` gives the answer."""
        return Partitions(self._whole, expected, fitting=True)

    def counted(self, port: int, rows: ZSet) -> ZSet:
        """Rows of an input, with their weight in it."""
        return self._moved(rows, self._movings[port])

    def loaded(self, run: Run) -> ZSet:
        """The answer for all rows, which are staged."""
        if not len(run):
            return self.empty
        self.trace.check()
        self.trace.stage_run(run)
        delta = run.zset()
        return self._weighed(delta, self._weigh(delta.rows[:, self._whole.payload :]))

    def commit(self) -> None:
        self.trace.commit()

    def rollback(self) -> None:
        self.trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"trace": self.trace}


class Distinct(Weigh):
    """The rows of positive weight, with weight 1."""

    def __init__(self, source: Node, *, sql: str = "") -> None:
        super().__init__([source], _any, label="distinct", sql=sql)


class Union(Weigh):
    """UNION: the rows that one of the inputs has, with weight 1."""

    def __init__(self, sources: Sequence[Node], *, sql: str = "") -> None:
        super().__init__(sources, _any, label="union", sql=sql)


class Intersect(Weigh):
    """INTERSECT: the rows that all inputs have, with weight 1; with ``all``,
    as often as the one that has them least often.
    """

    def __init__(self, sources: Sequence[Node], *, all: bool = False, sql: str = "") -> None:  # noqa: A002
        super().__init__(sources, _least if all else _every, label="intersect", detail="all" if all else "", sql=sql)


class Except(Weigh):
    """EXCEPT: the rows of the first input that no other has, with weight 1; with ``all``,
    less as often as the others have them.
    """

    def __init__(self, sources: Sequence[Node], *, all: bool = False, sql: str = "") -> None:  # noqa: A002
        super().__init__(sources, _rest if all else _only, label="except", detail="all" if all else "", sql=sql)


def _any(weights: Weights) -> Weights:
    return np.asarray((weights > 0).any(axis=1), dtype=np.int64)


def _every(weights: Weights) -> Weights:
    return np.asarray((weights > 0).all(axis=1), dtype=np.int64)


def _least(weights: Weights) -> Weights:
    return np.asarray(np.maximum(weights, 0).min(axis=1))


def _only(weights: Weights) -> Weights:
    return np.asarray((weights[:, 0] > 0) & (weights[:, 1:] <= 0).all(axis=1), dtype=np.int64)


def _rest(weights: Weights) -> Weights:
    there = np.maximum(weights, 0)
    return np.asarray(np.maximum(there[:, 0] - there[:, 1:].sum(axis=1), 0))


def _check_types(first: pa.Schema, other: pa.Schema, what: str) -> None:
    if len(first) != len(other):
        raise SchemaError.column_count(len(other), list(first.names), where=what)
    for mine, theirs in zip(first, other, strict=True):
        if mine.type != theirs.type:
            raise SchemaError.type_clash(theirs.name, str(theirs.type), str(mine.type), where=what)
