"""Values held between two bounds: clip.

What lies below the lower bound becomes the bound, what lies above the upper one becomes that. Null stays null and NaN
stays NaN: neither lies anywhere. Bounds have the column's type, so that no value changes that is within them. Thousands
of columns are clipped without any SQL text; Spark's own form says the same with CASE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.node import Node, RowKernel, RowWise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Bounds", "Clip", "bound_of"]

Bounds = tuple[pa.Scalar | None, pa.Scalar | None]


@dataclass(frozen=True)
class Clip(RowWise):
    """The rows with some columns clipped.

    >>> from headwater.timeseries.operators.values import Values
    >>> rows = pa.table({"v": [1, None, 5, 9]})
    >>> Clip(Values(rows), {"v": (pa.scalar(2), pa.scalar(5))}).kernel()(rows)["v"].to_pylist()
    [2, None, 5, 5]
    """

    input: Node
    bounds: Mapping[str, Bounds]

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def frame_first(self) -> bool:
        return True

    def line(self) -> str:
        names = list(self.bounds)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        return f"clip {shown}"

    def kept(self, name: str) -> str | None:
        return None if name in self.bounds else super().kept(name)

    def kernel(self) -> RowKernel:
        return _Clip(tuple(self.bounds.items()))

    def frame(self, *frames: DataFrame) -> DataFrame:
        from pyspark.sql.functions import isnan, lit, when

        from headwater.timeseries.querying import quoted

        (frame,) = frames
        clipped = {}
        for name, (lower, upper) in self.bounds.items():
            column, kind = frame[quoted(name)], frame.schema[name].dataType
            made = None
            if pa.types.is_floating(self.schema.field(name).type):
                made = when(isnan(column), column)
            if lower is not None:
                bound = lit(lower.as_py()).cast(kind)
                made = when(column < bound, bound) if made is None else made.when(column < bound, bound)
            if upper is not None:
                bound = lit(upper.as_py()).cast(kind)
                made = when(column > bound, bound) if made is None else made.when(column > bound, bound)
            if made is not None:
                clipped[name] = made.otherwise(column)
        return frame.withColumns(clipped)


@dataclass(frozen=True, slots=True)
class _Clip:
    bounds: tuple[tuple[str, Bounds], ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name, (lower, upper) in self.bounds:
            columns[name] = _clipped(columns[name], lower, upper)
        return pa.Table.from_arrays(list(columns.values()), schema=rows.schema)


def _clipped(column: pa.ChunkedArray, lower: pa.Scalar | None, upper: pa.Scalar | None) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type) and not column.null_count:
        # numpy hands NaN on, where Arrow would take the bound.
        low, high = (None if bound is None else bound.as_py() for bound in (lower, upper))
        values = [pa.array(np.clip(np.asarray(chunk), low, high), column.type) for chunk in column.chunks]
        return pa.chunked_array(values, column.type)
    # Comparisons with NaN are false and with null are null, so that both stay.
    if lower is not None:
        column = pc.if_else(pc.fill_null(pc.less(column, lower), False), lower, column)
    if upper is not None:
        column = pc.if_else(pc.fill_null(pc.greater(column, upper), False), upper, column)
    return column


def bound_of(value: Any, field: pa.Field, argument: str) -> pa.Scalar | None:
    """A bound in the type of its column; None is no bound.

    >>> bound_of(2, pa.field("v", pa.float64()), "lower")
    <pyarrow.DoubleScalar: 2.0>
    """
    kind = field.type
    t = pa.types
    if not (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_date(kind) or t.is_timestamp(kind)):
        raise UnsupportedError.column_type(field.name, str(kind), "clip numbers, dates and timestamps")
    if value is None:
        return None
    if isinstance(value, float) and value != value:
        raise InputError.bad_argument(argument, value, "a number; NaN bounds nothing")
    try:
        given = value if isinstance(value, pa.Scalar) else pa.scalar(value)
        if t.is_floating(kind) and t.is_decimal(given.type):
            given = pa.scalar(float(value))
        bound = given.cast(kind)
        exact = t.is_floating(kind) or bound.cast(given.type).equals(given) or bound.as_py() == value
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        exact = False
    if not exact:
        raise InputError.bad_argument(argument, value, f"a value that column `{field.name}` of type {kind} can hold")
    return bound
