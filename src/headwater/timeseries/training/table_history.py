"""A table with its history as a source: every row that was ever visible since some moment, with when it came and went.

Beside the table's columns it has two (`known_asof.SINCE` and `UNTIL`), in microseconds. Tasks read a share of the
files each, every file once, with the rows that its deletion vectors mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.schema import Schema
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.deletion_vectors import positions
from headwater.lake.scan import POSITION, live_vector, read_file
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct
from headwater.timeseries.operators.known_asof import SINCE, UNTIL
from headwater.timeseries.sources.delta_reading import shaped
from headwater.timeseries.sources.sharing import IN_MEMORY, shares_of
from headwater.timeseries.sources.source import Size, Source, Tasks
from headwater.timeseries.training.file_history import FileHistory, FileLife

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TableHistory"]

_OWN = (pa.field(SINCE, pa.int64()), pa.field(UNTIL, pa.int64()))
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableHistory(Source):
    """The rows that a table has had."""

    history: FileHistory
    name: str
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        known = self.history.until.schema
        fields = [known.field(n).arrow.with_nullable(True).remove_metadata() for n in self.names]
        return pa.schema([*fields, *_OWN])

    @cached_property
    def size(self) -> Size:
        counts = [life.file.num_records for life in self.history.lives]
        rows = None if None in counts else sum(c for c in counts if c is not None)
        share = len(self.names) / max(1, len(self.history.until.schema.names))
        read = int(sum(life.file.size for life in self.history.lives) * IN_MEMORY * share)
        return Size(rows, read + 16 * (rows or 0))

    def line(self) -> str:
        return f"scan the history of {self.name}@{self.history.until.version}: {len(self.history.lives)} files"

    def narrowed(self, names: list[str]) -> TableHistory:
        return replace(self, names=tuple(n for n in self.names if n in names))

    def skipping(self, conjuncts: tuple[Conjunct, ...]) -> TableHistory:
        return self

    def tasks(self) -> Tasks:
        from headwater.lake.spark.tasks import without_files

        known, texts = self.history.texts()
        sizes = [life.file.size for life in self.history.lives]
        shares = shares_of(zip(texts, sizes, strict=True), whole=True)
        read = tuple(tuple(text for text, _ in share) for share in shares)
        return Tasks(len(shares), _Reading(without_files(self.history.until), tuple(known), read, self.schema))

    def spark(self, session: SparkSession) -> DataFrame:
        from headwater.lake.spark.types import spark_struct
        from headwater.spark import blocks

        found = self.tasks()
        frame, source = blocks.tasks_of(session, found.count, found.work)
        return blocks.rows_of(frame, source, self.schema, spark_struct(Schema.from_arrow(self.schema)))


@dataclass(frozen=True, slots=True)
class _Reading:
    snapshot: Snapshot
    known: tuple[Metadata, ...]
    shares: tuple[tuple[str, ...], ...]
    schema: pa.Schema

    def __call__(self, number: int) -> Iterator[pa.Table]:
        for text in self.shares[number]:
            found, at = json.loads(text)
            yield from self._rows(FileLife.from_json(found, None if at < 0 else self.known[at]))

    def _rows(self, life: FileLife) -> Iterator[pa.Table]:
        names = self.schema.names[:-2]
        spans = _Spans(self.snapshot, life)
        batches = read_file(self.snapshot, life.file, names, positions=True, with_deleted=True, metadata=life.metadata)
        for batch in batches:
            which, since, until = spans.of(batch.column(POSITION).to_numpy())
            rows = shaped(batch.take(pa.array(which)), pa.schema(list(self.schema)[:-2]))
            yield rows.append_column(_OWN[0], pa.array(since)).append_column(_OWN[1], pa.array(until))


class _Spans:
    """When the rows of a file were visible, by their positions."""

    def __init__(self, base: Snapshot, life: FileLife) -> None:
        self._states = [(at, _dead(base, file)) for at, file in life.states]
        self._end = life.end

    def of(self, places: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """For rows at positions that rise: which of them were visible when; one that came back is there twice."""
        which, since, until = [], [], []
        started = np.full(len(places), -1, np.int64)
        for at, dead in self._states:
            alive = ~np.isin(places, dead, assume_unique=True) if len(dead) else np.ones(len(places), np.bool_)
            gone = np.flatnonzero(~alive & (started >= 0))
            which.append(gone)
            since.append(started[gone])
            until.append(np.full(len(gone), at))
            started[gone] = -1
            started[alive & (started < 0)] = at
        rest = np.flatnonzero(started >= 0)
        which.append(rest)
        since.append(started[rest])
        until.append(np.full(len(rest), self._end))
        return np.concatenate(which), np.concatenate(since), np.concatenate(until)


def _dead(base: Snapshot, file: AddFile) -> Numbers:
    vector = live_vector(base, file)
    return np.empty(0, np.int64) if vector is None else positions(vector)
