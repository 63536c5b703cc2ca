"""Before, after, between: the rows whose times lie between two moments. Rows without a time are in none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.sql.conjuncts import Conjunct, Op
from headwater.timeseries.node import Node, RowKernel, RowWise
from headwater.timeseries.querying import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TimeFilter", "moment"]


@dataclass(frozen=True)
class TimeFilter(RowWise):
    """The rows from ``start`` to ``end``; None is without a bound.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"t": [1, 2, None, 3]}))
    >>> run_here(TimeFilter(rows, "t", pa.scalar(1), pa.scalar(3), with_end=False)).to_pylist()
    [{'t': 1}, {'t': 2}]
    """

    input: Node
    time: str
    start: pa.Scalar | None = None
    end: pa.Scalar | None = None
    with_start: bool = True
    with_end: bool = True

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    def _signs(self) -> tuple[str, str]:
        return (">=" if self.with_start else ">", "<=" if self.with_end else "<")

    def line(self) -> str:
        bounds = zip(self._signs(), (self.start, self.end), strict=True)
        return " and ".join(f"{self.time} {sign} {bound.as_py()}" for sign, bound in bounds if bound is not None)

    def conjuncts(self) -> tuple[Conjunct, ...]:
        """The same, for skipping files."""
        start: Op = ">=" if self.with_start else ">"
        end: Op = "<=" if self.with_end else "<"
        bounds = ((start, self.start), (end, self.end))
        return tuple(Conjunct(self.time, op, (bound.as_py(),)) for op, bound in bounds if bound is not None)

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        return (wanted | {self.time},)

    def kernel(self) -> RowKernel:
        return _Between(self.time, self.start, self.end, self.with_start, self.with_end)

    def frame(self, *frames: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        found = frames[0]
        kind = found.schema[self.time].dataType
        for sign, bound in zip(self._signs(), (self.start, self.end), strict=True):
            if bound is not None:
                column, limit = f.col(quoted(self.time)), f.lit(bound.as_py()).cast(kind)
                compared = {">=": column >= limit, ">": column > limit, "<=": column <= limit, "<": column < limit}
                found = found.where(compared[sign])
        return found


@dataclass(frozen=True, slots=True)
class _Between:
    time: str
    start: pa.Scalar | None
    end: pa.Scalar | None
    with_start: bool
    with_end: bool

    def __call__(self, rows: pa.Table) -> pa.Table:
        column = rows.column(self.time)
        kept = pc.is_valid(column)
        if self.start is not None:
            kept = pc.and_(kept, (pc.greater_equal if self.with_start else pc.greater)(column, self.start))
        if self.end is not None:
            kept = pc.and_(kept, (pc.less_equal if self.with_end else pc.less)(column, self.end))
        return rows.filter(kept)


def moment(what: str, value: Any, field: pa.Field) -> pa.Scalar:
    """A moment as a user writes it, in the type of a time column; without a zone it is in UTC.

    >>> moment("start", "2026-01-01 10:00", pa.field("t", pa.timestamp("us", "UTC"))).as_py().isoformat()
    '2026-01-01T10:00:00+00:00'
    """
    kind = field.type
    try:
        if isinstance(value, str):
            value = date.fromisoformat(value) if pa.types.is_date(kind) else datetime.fromisoformat(value)
        if pa.types.is_timestamp(kind):
            value = _instant(value, zoned=kind.tz is not None)
        wanted = datetime if pa.types.is_timestamp(kind) else date if pa.types.is_date(kind) else int
        if not isinstance(value, wanted) or isinstance(value, bool) or (wanted is date and isinstance(value, datetime)):
            raise TypeError
        return pa.scalar(value, kind)
    except (TypeError, ValueError, pa.ArrowException):
        expected = f"a moment that can be compared with `{field.name}`, which is {kind}"
        raise InputError.bad_argument(what, value, expected) from None


def _instant(value: Any, *, zoned: bool) -> datetime:
    found = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    if zoned and found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    if not zoned and found.tzinfo is not None:
        raise TypeError
    return found
