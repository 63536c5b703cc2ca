"""Earliest and latest: the first or last n rows of each series.

Where the rows that are kept end between two that nothing puts in order, and which differ, it would be chance which of
them is kept: that is refused. Elsewhere ties do no harm. The latest rows need to know when a series ends, so the last n
rows seen wait for the next chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.timeseries.node import Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.querying import quoted
from headwater.timeseries.reaching import Neighbourhood, Reach, neighbourhoods, places
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import check_total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FirstRows"]


@dataclass(frozen=True)
class FirstRows(Keyed):
    """The earliest (or ``latest``) n rows of each series.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"s": ["a", "b", "a"], "t": [2, 1, 1]}))
    >>> run_here(FirstRows(rows, Ordering("t", ("s",)), 1, latest=True)).to_pylist()
    [{'s': 'a', 't': 2}, {'s': 'b', 't': 1}]
    """

    input: Node
    ordering: Ordering
    n: int
    latest: bool = False

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    def line(self) -> str:
        return f"{'latest' if self.latest else 'earliest'} {self.n} row(s) of each series"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def kernel(self) -> KeyedKernel:
        return _First(self.ordering, self.n, self.latest)

    def frame(self, *frames: DataFrame) -> DataFrame:
        by = ", ".join(map(quoted, self.ordering.by))
        columns = (self.ordering.time, *self.ordering.tiebreak)
        order = ", ".join(quoted(c) + (" DESC" if self.latest else "") for c in columns)
        window = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {order}"
        numbered = frames[0].selectExpr("*", f"row_number() OVER ({window}) AS __hw_row")
        return numbered.where(f"__hw_row <= {self.n}").drop("__hw_row")


@dataclass(frozen=True, slots=True)
class _First:
    ordering: Ordering
    n: int
    latest: bool

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        reach = Reach(1, self.n if self.latest else 0)
        for near in neighbourhoods(rows.sorted(self.ordering.columns), self.ordering, reach):
            kept, edge = self._kept(near)
            # Both rows at the edge, one after the other: a pair that is tied is next to each other here too.
            if len(edge):
                both = np.stack((edge - 1, edge), axis=1).ravel()
                check_total(near.table.take(pa.array(both)), self.ordering)
            found = near.table.take(pa.array(kept)) if len(kept) < near.table.num_rows else near.table
            if found.num_rows:
                yield found

    def _kept(self, near: Neighbourhood) -> tuple[np.ndarray, np.ndarray]:
        """The rows that stay, and the later rows of pairs of which only one does."""
        rows = near.table.num_rows
        place = places(near.starts, rows)
        asked = np.zeros(rows, np.bool_)
        asked[near.begin : near.end] = True
        if self.latest:
            lengths = np.diff(near.starts, append=rows)
            behind = np.repeat(lengths, lengths) - 1 - place
            return np.flatnonzero(asked & (behind < self.n)), np.flatnonzero(
                asked & (behind == self.n - 1) & (place > 0)
            )
        number = place.copy()
        first = int(near.starts[1]) if len(near.starts) > 1 else rows
        number[:first] += near.first
        return np.flatnonzero(asked & (number < self.n)), np.flatnonzero(asked & (number == self.n) & (place > 0))
