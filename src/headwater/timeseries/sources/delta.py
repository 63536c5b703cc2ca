"""A version of a Delta table, read by tasks from its files.

The log says which files there are and which of them can hold a row that meets a condition; a task opens its share of
them, a large file being shared by its row groups, and reads what the lake itself would read (`lake.scan`): projection,
row groups skipped by their statistics, deletion vectors, partition values, columns under the names of today. Storage
options travel inside the pickled function, never in a plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.lake import find
from headwater.lake.actions import AddFile
from headwater.lake.published import check_built
from headwater.lake.scan import read_file
from headwater.lake.snapshot import Snapshot
from headwater.spark.block_format import coded
from headwater.sql.conjuncts import Conjunct
from headwater.timeseries.sources.delta_reading import DeltaReading, shaped
from headwater.timeseries.sources.sampling import pieces_of, thinned
from headwater.timeseries.sources.sharing import IN_MEMORY, shares_of
from headwater.timeseries.sources.source import Size, Source, Tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.lake.readable import ReadableTable

__all__ = ["DeltaSource"]


@dataclass(frozen=True, eq=False)
class DeltaSource(Source):
    """The rows of a table at one version."""

    table: ReadableTable
    names: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...] = ()
    """What the plan above asks of its rows: files and row groups that cannot have it are left out."""
    codes: tuple[str, ...] = ()
    """Columns of text that tasks give as dictionaries."""

    @classmethod
    def of(cls, table: ReadableTable) -> DeltaSource:
        """All of a table's columns, at the version that it has now."""
        check_built(table.name, table.snapshot)
        pinned = table.at(version=table.snapshot.version)
        return cls(pinned, tuple(pinned.snapshot.schema.names))

    @property
    def snapshot(self) -> Snapshot:
        return self.table.snapshot

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [self.snapshot.schema.field(n).arrow for n in self.names]
        return pa.schema([f.with_nullable(True).remove_metadata() for f in fields])

    @cached_property
    def files(self) -> tuple[AddFile, ...]:
        """The files that may hold rows that are wanted."""
        return tuple(find.candidate_files(self.snapshot, self.conjuncts))

    @cached_property
    def size(self) -> Size:
        counts = [f.num_records for f in self.files]
        rows = None if None in counts else sum(c for c in counts if c is not None)
        share = len(self.names) / max(1, len(self.snapshot.schema.names))
        return Size(rows, int(sum(f.size for f in self.files) * IN_MEMORY * share))

    def line(self) -> str:
        parts = [f"{self.table.name or self.snapshot.where}@{self.snapshot.version}: {len(self.files)} files"]
        skipped = len(self.snapshot.files) - len(self.files)
        if skipped:
            parts.append(f"{skipped} skipped")
        if len(self.names) < len(self.snapshot.schema.names):
            parts.append(f"{len(self.names)} of {len(self.snapshot.schema.names)} columns")
        return f"scan {', '.join(parts)}"

    def tasks(self) -> Tasks:
        shares = shares_of((f, f.size) for f in self.files)
        bare = _without_files(self.snapshot)
        texts = tuple(json.dumps([[f.to_action()["add"], within] for f, within in share]) for share in shares)
        schema = coded(self.schema, self.codes)
        return Tasks(len(shares), DeltaReading(bare, texts, self.names, self.conjuncts, schema, self.codes))

    def spark(self, session: SparkSession) -> DataFrame:
        from headwater.lake.spark.read import read

        return read(self.table, session, columns=list(self.names), skipping=self.conjuncts)

    def sample(self, rows: int) -> pa.Table | None:
        bare = _without_files(self.snapshot)
        pieces = [
            read_file(bare, f, self.names, conjuncts=self.conjuncts, within=span)
            for f, span in pieces_of([(f, f.size) for f in self.files])
        ]
        found = [shaped(batch, self.schema) for batch in thinned(pieces, rows, self.size.rows)]
        return pa.concat_tables([self.schema.empty_table(), *found])

    def narrowed(self, names: list[str]) -> DeltaSource:
        return replace(self, names=tuple(n for n in self.names if n in names))

    def coded(self, names: Sequence[str]) -> DeltaSource:
        texts = [n for n in names if pa.types.is_string(self.schema.field(n).type)]
        return replace(self, codes=tuple(n for n in texts if n not in self.snapshot.partition_columns))

    def skipping(self, conjuncts: tuple[Conjunct, ...]) -> DeltaSource:
        return replace(self, conjuncts=(*self.conjuncts, *conjuncts))


def _without_files(now: Snapshot) -> Snapshot:
    from headwater.lake.spark.tasks import without_files

    return without_files(now)
