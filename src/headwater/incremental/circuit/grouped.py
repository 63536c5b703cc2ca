"""Grouped: rows by key, waiting for aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from headwater.base.errors import InputError, SchemaError
from headwater.incremental.aggregates.aggregation import Aggregation
from headwater.incremental.dataflow.arguments import texts
from headwater.incremental.recipes.row_stream import S

__all__ = ["Grouped"]


class Grouped(Generic[S]):
    """The rows of a stream by some columns: see `Stream.group_by`."""

    __slots__ = ("_keys", "_stream")

    def __init__(self, stream: S, keys: Sequence[str]) -> None:
        if len(set(keys)) < len(keys):
            raise SchemaError.duplicate_columns(list(keys))
        self._stream = stream
        self._keys = tuple(keys)

    def agg(self, *aggregations: Aggregation, **named: str) -> S:
        """One row for each key: ``agg(n="count(*)", total="sum(amount)")``.

        A text is Spark's: aggregates of expressions, with DISTINCT and FILTER (WHERE …), and expressions of aggregates.
        `Aggregation` objects are for what SQL cannot say; texts and objects do not mix.
        """
        from headwater.incremental.recipes.aggregates import aggregated, kept

        for one in aggregations:
            if not isinstance(one, Aggregation):
                raise InputError.bad_argument("agg", one, 'a text with a name, n="count(*)", or an Aggregation')
        texts("agg", *named.values())
        if bool(aggregations) == bool(named):
            raise InputError.bad_argument("agg", "both or nothing", 'texts like n="count(*)", or Aggregation objects')
        if aggregations:
            return kept(self._stream, self._keys, aggregations)
        return aggregated(self._stream, self._keys, named)

    def approx_distinct(self, column: str, *, name: str, error: float = 0.05) -> S:
        """About how many different values a column has for each key, nulls left out, in state of bounded size.

        ``error`` is the standard error; deletions are followed exactly. Where the values fit, ``agg(n="count(DISTINCT
        v)")`` is exact.

        >>> import headwater as hw, pyarrow as pa
        >>> c = hw.Circuit()
        >>> t = c.input("t", pa.schema([("page", pa.string()), ("visitor", pa.int64())]))
        >>> t.group_by("page").approx_distinct("visitor", name="visitors").output("o")
        >>> c.step(t=pa.table({"page": ["a"] * 4, "visitor": [1, 2, 2, None]}))["o"].to_arrow().to_pylist()
        [{'page': 'a', 'visitors': 2, '_weight': 1}]
        """
        from headwater.incremental.recipes.approx_distinct import approx_distinct

        texts("column", column, name)
        return approx_distinct(self._stream, self._keys, column, name=name, error=error)
