"""Diff: how much a column has changed since so many rows before, in the series.

The difference has Spark's type: of whole numbers and floats their own (what does not fit is an error), of dates and
timestamps a length of time. Decimals are left to SQL, which knows their digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import ExpressionError
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.series import OverSeries, Windowed, extended, extended_schema
from headwater.timeseries.operators.shift import shifted
from headwater.timeseries.querying import quoted
from headwater.timeseries.reaching import Reach, neighbourhoods
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Diff", "can_differ", "difference_node"]


def can_differ(kind: pa.DataType) -> bool:
    """Whether values of a type can be subtracted.

    >>> can_differ(pa.date32()), can_differ(pa.string())
    (True, False)
    """
    t = pa.types
    timed = t.is_date32(kind) or (t.is_timestamp(kind) and kind.unit == "us")
    return bool(t.is_signed_integer(kind) or kind in (pa.float32(), pa.float64()) or t.is_decimal128(kind) or timed)


def difference_node(below: Node, ordering: Ordering, columns: Mapping[str, str], n: int) -> Node:
    """The node that subtracts: of decimals in SQL, else `Diff`."""
    decimals = {new: old for new, old in columns.items() if pa.types.is_decimal(below.schema.field(old).type)}
    others = {new: old for new, old in columns.items() if new not in decimals}
    if others:
        below = Diff(below, ordering, others, n)
    if decimals:
        reach = Reach(max(n, 0), max(-n, 0))
        which = f"lag({{0}}, {n})" if n >= 0 else f"lead({{0}}, {-n})"
        texts = {
            new: Windowed(f"{quoted(old)} - {which.format(quoted(old))}", reach=reach) for new, old in decimals.items()
        }
        below = OverSeries(below, ordering, texts, f"diff {', '.join(decimals.values())} over {n} row(s)")
    return below


@dataclass(frozen=True)
class Diff(Keyed):
    """Columns less what they were ``n`` rows before; null where there was no such row.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = pa.table({"t": [1, 2, 4], "p": [5, 7, 4]})
    >>> found = run_here(Diff(Values(trades), Ordering("t"), {"move": "p", "wait": "t"}, 1))
    >>> found.select(["move", "wait"]).to_pylist()
    [{'move': None, 'wait': None}, {'move': 2, 'wait': 1}, {'move': -3, 'wait': 2}]
    """

    input: Node
    ordering: Ordering
    columns: Mapping[str, str]
    n: int

    @property
    def schema(self) -> pa.Schema:
        below = self.input.schema
        kinds = {new: below.field(old).type for new, old in self.columns.items()}
        return extended_schema(
            below, {n: pa.duration("us") if pa.types.is_temporal(kind) else kind for n, kind in kinds.items()}
        )

    def line(self) -> str:
        return f"diff {', '.join(self.columns.values())} over {self.n} row(s)"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        if time in self.columns:
            return (None,)
        return (Extent(time, time, None if self.n > 0 else 0, None if self.n < 0 else 0),)

    def kernel(self) -> KeyedKernel:
        return _Diff(self.ordering, dict(self.columns), self.n)

    def frame(self, *frames: DataFrame) -> DataFrame:
        by = ", ".join(map(quoted, self.ordering.by))
        order = ", ".join(map(quoted, (self.ordering.time, *self.ordering.tiebreak)))
        window = f"({f'PARTITION BY {by} ' if by else ''}ORDER BY {order})"
        texts = {
            new: f"{quoted(old)} - lag({quoted(old)}, {self.n}) OVER {window}" for new, old in self.columns.items()
        }
        return frames[0].selectExpr(
            *[f"{texts[n]} AS {quoted(n)}" if n in texts else quoted(n) for n in self.schema.names],
        )


@dataclass(frozen=True, slots=True)
class _Diff:
    ordering: Ordering
    columns: Mapping[str, str]
    n: int

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering)
        for near in neighbourhoods(chunks, self.ordering, Reach(max(self.n, 0), max(-self.n, 0))):
            found = {}
            for new, old in self.columns.items():
                column = near.table.column(old)
                if pa.types.is_date(column.type):
                    column = column.cast(pa.timestamp("us"))
                before = shifted(near, column, self.n, pa.scalar(None, column.type))
                try:
                    after = column.slice(near.begin, near.end - near.begin)
                    found[new] = pc.subtract_checked(after, before)
                except pa.ArrowInvalid:
                    raise ExpressionError.failed(f"diff {old}", "a number does not fit its type (overflow)") from None
            yield extended(near.rows, found)
