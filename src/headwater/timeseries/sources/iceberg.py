"""An Iceberg table, through pyiceberg: its plan says which files there are, and tasks read them.

What pyiceberg plans (``table.scan().plan_files()``) is shared between tasks; each makes Arrow of its files with
pyiceberg's own reader, which knows Iceberg's deletes and how columns are found. Conditions are ours, and applied to the
rows. A snapshot is pinned when the stream is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.schema import Schema
from headwater.timeseries.sources.sharing import IN_MEMORY, shares_of
from headwater.timeseries.sources.source import Size, Source, Tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["IcebergSource"]


@dataclass(frozen=True, eq=False)
class IcebergSource(Source):
    """The rows of an Iceberg table at one snapshot."""

    table: Any
    snapshot_id: int | None
    names: tuple[str, ...]
    whole: pa.Schema

    @classmethod
    def of(cls, table: Any, snapshot_id: int | None = None) -> IcebergSource:
        """All columns of a pyiceberg table, at a snapshot or as it is now."""
        now = table.current_snapshot()
        pinned = snapshot_id if snapshot_id is not None else (now.snapshot_id if now is not None else None)
        found = table.scan(snapshot_id=pinned).projection().as_arrow()
        whole = pa.schema([f.with_nullable(True).remove_metadata() for f in Schema.from_arrow(found).arrow])
        return cls(table, pinned, tuple(whole.names), whole)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.whole.field(n) for n in self.names])

    @cached_property
    def _files(self) -> list[Any]:
        return list(self._scan().plan_files()) if self.snapshot_id is not None else []

    def _scan(self) -> Any:
        return self.table.scan(snapshot_id=self.snapshot_id, selected_fields=self.names)

    @cached_property
    def size(self) -> Size:
        share = len(self.names) / max(1, len(self.whole))
        bytes_ = sum(f.file.file_size_in_bytes for f in self._files)
        return Size(sum(f.file.record_count for f in self._files), int(bytes_ * IN_MEMORY * share))

    def line(self) -> str:
        return f"scan Iceberg {'.'.join(self.table.name())}: {len(self._files)} files"

    def tasks(self) -> Tasks:
        cut = shares_of(((f, f.file.file_size_in_bytes) for f in self._files), whole=True)
        shares = [[file for file, _ in share] for share in cut]
        return Tasks(
            len(shares), _Reading(self.table.metadata, self.table.io, self._scan().projection(), shares, self.schema)
        )

    def spark(self, session: SparkSession) -> DataFrame:
        from headwater.lake.spark.types import spark_struct
        from headwater.spark import blocks

        tasks = self.tasks()
        frame, source = blocks.tasks_of(session, tasks.count, tasks.work)
        return blocks.rows_of(frame, source, self.schema, spark_struct(Schema.from_arrow(self.schema)))

    def narrowed(self, names: list[str]) -> IcebergSource:
        return replace(self, names=tuple(n for n in self.names if n in names))


@dataclass(frozen=True, slots=True)
class _Reading:
    metadata: Any
    io: Any
    projected: Any
    shares: list[list[Any]]
    schema: pa.Schema

    def __call__(self, number: int) -> Iterator[pa.Table]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        scan = ArrowScan(self.metadata, self.io, self.projected, AlwaysTrue())
        for batch in scan.to_record_batches(self.shares[number]):
            table = pa.Table.from_batches([batch]).select(self.schema.names)
            yield table.cast(self.schema)
