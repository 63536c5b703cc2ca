"""Z-scores: how many standard deviations a value is away from the mean of the rows around it, or of its whole series.

``(x - avg(x)) / stddev_samp(x)`` over a frame that includes the row. Where nothing varies, or one value is all there
is, there is no score: null. Of a whole series the score needs the series in memory at once; over a frame only what the
frame reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.timeseries.frames import Frame
from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.operators.series import OverSeries, Windowed
from headwater.timeseries.plain_aggregates import PlainAggregate, plain_aggregate
from headwater.timeseries.querying import quoted

__all__ = ["zscore_node"]


@dataclass(frozen=True, slots=True)
class _Score(Windowed):
    """``function`` is the column's name in SQL, ``column`` the name itself."""

    column: str = ""

    def plain(self, schema: pa.Schema) -> PlainAggregate | None:
        deviation = plain_aggregate(f"stddev_samp({self.function})", schema)
        return None if deviation is None else PlainAggregate("zscore", self.column, pa.float64())

    def text(self, parts: str, kind: pa.DataType | None) -> str:
        assert self.frame is not None
        over = f"OVER ({parts} {self.frame.sql(kind)})"
        value = f"CAST({self.function} AS DOUBLE)"
        score = f"({value} - avg({value}) {over}) / nullif(stddev_samp({value}) {over}, CAST(0 AS DOUBLE))"
        if not self.least:
            return score
        return f"CASE WHEN count({self.function}) {over} >= {self.least} THEN {score} END"


def zscore_node(
    below: Node, ordering: Ordering, columns: Mapping[str, str], *, frame: Frame, least: int = 0, shown: str = "zscore"
) -> OverSeries:
    """The scores of columns, by the names they get.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"t": [1, 2, 3], "v": [1, 2, 3]}))
    >>> run_here(zscore_node(rows, Ordering("t"), {"z": "v"}, frame=Frame(None, None)))["z"].to_pylist()
    [-1.0, 0.0, 1.0]
    """
    windows = {new: _Score(quoted(old), frame, least=least, column=old) for new, old in columns.items()}
    return OverSeries(below, ordering, windows, shown)
