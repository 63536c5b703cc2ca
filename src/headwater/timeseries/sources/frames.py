"""A DataFrame of Spark's as a source: whatever a session can read or compute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.timeseries.sources.source import Size, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FrameSource"]


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """The rows of a frame."""

    rows: DataFrame

    @cached_property
    def schema(self) -> pa.Schema:
        from headwater.lake.spark.types import arrow_schema

        return pa.schema([f.remove_metadata() for f in arrow_schema(self.rows.schema)])

    @property
    def size(self) -> Size:
        return Size(None, None)

    def line(self) -> str:
        return "a DataFrame"

    def spark(self, session: SparkSession) -> DataFrame:
        return self.rows
