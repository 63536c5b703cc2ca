"""How many rows each series has, counted exactly, in pieces that are put together.

Series are told apart by their keys themselves, by the equality of keys (null is a key, NaN is one, -0.0 is 0.0). What
is held is a row for each series that was seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.timeseries.rows import key_starts, sort_table

__all__ = ["ROWS", "SeriesCounts"]

ROWS = "__hw_rows"
_PIECES = 64


class SeriesCounts:
    """Rows by series.

    >>> counts = SeriesCounts(("s",))
    >>> counts.add(pa.table({"s": ["a", None, "a"]}))
    >>> counts.merge(pa.table({"s": ["b", "a"], ROWS: [5, 1]}))
    >>> counts.found().to_pylist()
    [{'s': None, '__hw_rows': 1}, {'s': 'a', '__hw_rows': 3}, {'s': 'b', '__hw_rows': 5}]
    """

    def __init__(self, by: Sequence[str]) -> None:
        self._by = list(by)
        self._held: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Count the rows of a table."""
        if table.num_rows:
            ones = pa.array(np.ones(table.num_rows, np.int64))
            keys = [table.column(name) for name in self._by]
            self.merge(self._summed(pa.Table.from_arrays([*keys, ones], names=[*self._by, ROWS])))

    def merge(self, counts: pa.Table) -> None:
        """Add what was counted elsewhere."""
        if counts.num_rows:
            self._held.append(counts)
            if len(self._held) >= _PIECES:
                self._held = [self._summed(pa.concat_tables(self._held))]

    def found(self) -> pa.Table | None:
        """The series, in order, and their rows; None if there are no rows at all."""
        return self._summed(pa.concat_tables(self._held)) if self._held else None

    def _summed(self, counts: pa.Table) -> pa.Table:
        ordered = sort_table(counts, self._by) if self._by else counts
        starts = key_starts(ordered, self._by)
        rows = np.add.reduceat(np.asarray(ordered.column(ROWS)), starts)
        first = ordered.take(pa.array(starts))
        return first.set_column(len(self._by), ROWS, pa.array(rows))
