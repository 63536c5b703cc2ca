"""Vector methods of a stream: nearest neighbours, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from headwater.base.errors import InputError
from headwater.timeseries.methods.base import Methods, names_of
from headwater.timeseries.methods.checking import at_hand, checked, plan_of
from headwater.timeseries.node import Node
from headwater.timeseries.operators.narrow import Project
from headwater.timeseries.operators.nearest import BYTES, Nearest, Search, WithinDistance, joined_schema
from headwater.timeseries.operators.nearest_sharded import NearestInShard, Shard, Spread
from headwater.timeseries.operators.top_k import TopKOfEach
from headwater.timeseries.querying import quoted
from headwater.timeseries.vector_search import METRICS

__all__ = ["VectorMethods"]


class VectorMethods(Methods):
    """What can be done with columns of vectors: lists of float or double, of fixed size or not."""

    def nearest(
        self,
        other: Any,
        column: str,
        *,
        other_column: str | None = None,
        k: int | None = None,
        within: float | None = None,
        metric: str = "cosine",
        key: str | Sequence[str] | None = None,
        shards: int = 16,
        suffix: str = "_right",
        distance: str = "distance",
    ) -> Self:
        """For each row of another stream (a probe) the rows of this one that are nearest to it, exactly.

        A row of the answer has the columns of this stream, those of the probe, and the distance. Vectors that are null,
        or have a component that is null, infinite or NaN, are near nothing, and neither are, under ``cosine``, vectors
        of zeros. Rows at the same distance are decided by their other columns in their order, ascending, and after
        these by the vector's bytes.

        Parameters
        ----------
        other
            the probes: rows that are at hand go to every task, a stream goes to every shard
        column, other_column
            the vectors of this stream, and of the other (of the same name, if None)
        k
            how many rows for each probe; None for all that are near enough
        within
            the largest distance; None for any
        metric
            ``l2``, the Euclidean distance; ``cosine``, one minus the cosine; ``dot``, the inner product with its sign
            turned
        key
            columns that tell the probes apart; needed with ``k`` where they are a stream
        shards
            into how many parts this stream is cut where the probes are a stream
        suffix
            for columns of the probes whose names are taken
        distance
            the name of the column of distances

        >>> import pyarrow as pa
        >>> from headwater.timeseries.operators.values import Values
        >>> from headwater.timeseries.running.here import run_here
        >>> notes = VectorMethods(Values(pa.table({"id": [1, 2], "e": [[0.0, 1.0], [1.0, 0.0]]})))
        >>> found = notes.nearest({"q": ["x"], "v": [[2.0, 1.0]]}, "e", other_column="v", k=1, metric="l2")
        >>> run_here(found.plan).select(["id", "q", "distance"]).to_pylist()
        [{'id': 2, 'q': 'x', 'distance': 1.4142135623730951}]
        """
        probes = other if isinstance(other, Methods) else Methods(plan_of(other))
        search = Search(
            self._column(column),
            probes._column(other_column or column),
            metric,
            _whole("k", k),
            _limit(within),
            distance,
            suffix,
        )
        if metric not in METRICS:
            raise InputError.bad_argument("metric", metric, f"one of {', '.join(METRICS)}")
        if k is None and within is None:
            raise InputError.bad_argument("k", None, "how many rows for each probe, or a distance in within=")
        search.check(self.schema, probes.schema)
        table = at_hand(probes)
        if table is not None:
            node: Node = (
                Nearest(self.plan, table, search) if k is not None else WithinDistance(self.plan, table, search)
            )
            return self._with(checked(node))
        names = tuple(probes._column(name) for name in names_of(key or ()))
        if k is not None and not names:
            raise InputError.bad_argument("key", key, "columns that tell the rows of the other stream apart")
        _whole("shards", shards)
        return self._with(checked(self._sharded(probes.plan, search, names, shards)))

    def _sharded(self, probes: Node, search: Search, key: tuple[str, ...], shards: int) -> Node:
        rows = Shard(self.plan, search.column, shards)
        found: Node = NearestInShard(rows, Spread(probes, shards), search, key)
        schema = joined_schema(self.schema, probes.schema, search)
        if search.k is not None:
            # The probes' columns come after those of this stream, and some under other names.
            theirs = dict(zip(probes.schema.names, schema.names[len(self.schema) :], strict=False))
            found = TopKOfEach(found, tuple(theirs[name] for name in key), search.k, ((search.distance, False),))
        kept = {name: quoted(name) for name in found.schema.names if name != BYTES}
        return Project(found, kept, search.shown)


def _whole(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError.bad_argument(name, value, "a whole number from 1")
    return value


def _limit(within: float | None) -> float | None:
    if within is None:
        return None
    if isinstance(within, bool) or not isinstance(within, int | float) or within != within:
        raise InputError.bad_argument("within", within, "a distance")
    return float(within)
