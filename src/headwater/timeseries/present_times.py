"""Rows without a time: refused, in one place, for every operator that goes by time.

A null time has no place in a series. Sorted first it would be the row before the first one, so that `shift` and `ema`
begin with it; left out, rows would be lost without a message. pandas and polars refuse it in their as-of joins too.
So whoever goes by time says so (`Node.time_columns`), and what runs a plan puts this check in front of it: in tasks,
in this process, and in Spark's own operators.

Conditions (`filter`, `before`, `after`, `between`) do not go by time but compare it: as in SQL, a comparison with
null is not true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.spark.failures import packed
from headwater.timeseries.querying import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PresentTimes", "present_in_frame"]


@dataclass(frozen=True, slots=True)
class PresentTimes:
    """A table, if all of its rows have a time.

    >>> PresentTimes("t")(pa.table({"t": [1, 2]})).num_rows
    2
    >>> PresentTimes("t")(pa.table({"t": [1, None]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1024]: the time column `t` is null in at least 1 row: ...
      hint: leave such rows out first: .filter("t IS NOT NULL"); or give them a time with with_columns
    """

    column: str

    def __call__(self, table: pa.Table) -> pa.Table:
        missing = table.column(self.column).null_count
        if missing:
            raise InputError.null_times(self.column, missing)
        return table


def present_in_frame(frame: DataFrame, column: str) -> DataFrame:
    """The same rows of Spark's, which fail when one without a time is read."""
    from pyspark.sql import functions as f

    time = f.col(quoted(column))
    refused = f.raise_error(f.lit(packed(InputError.null_times(column))))
    return frame.withColumn(column, f.when(time.isNull(), refused).otherwise(time))
