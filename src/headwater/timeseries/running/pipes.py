"""Pipes: rows on their way through Spark's tasks, and what is still to be done to them before they move again.

A pipe is a frame of Spark's whose tasks know how to make tables of what they are given (`Source`), and operators are
added to that by composition, so that as many as possible run in one task. An exchange ends a task: its tables become
blocks, and the next task begins with those that came to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.spark import blocks
from headwater.spark.block_format import Block, coded, decode, encode
from headwater.spark.blocks import Arrived, ByKeys, Placement
from headwater.spark.figures import Counted, Figures, counted_tables, new_mark
from headwater.timeseries.node import KeyedKernel, RowKernel, StreamKernel
from headwater.timeseries.present_times import PresentTimes
from headwater.timeseries.rows import Rows
from headwater.timeseries.sources.source import Size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Batches", "Pipe", "Sample", "Stage", "meeting", "stacked"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one kind of task does, for `explain`: its lines, how it begins and why so,
    and the stages it gets rows from.
    """

    lines: tuple[str, ...]
    begins: str
    inputs: tuple[Stage, ...] = ()
    why: str = ""
    marks: tuple[int, ...] = ()
    """For each line what its figures are counted by (`headwater.spark.figures`); fewer where nothing is counted."""
    arrival: int | None = None
    """What the rows that it begins with are counted by."""

    def then(self, line: str, mark: int | None = None) -> Stage:
        marks = self.marks if mark is None else (*self.marks, mark)
        return replace(self, lines=(*self.lines, line), marks=marks)


@dataclass(frozen=True, slots=True)
class Sample:
    """A few rows, how many rows one of them stands for, and about how many there are."""

    table: pa.Table
    weight: float
    rows: float


@dataclass(frozen=True)
class Pipe:
    """Rows in tasks."""

    frame: DataFrame
    source: blocks.Source
    schema: pa.Schema
    stage: Stage
    size: Size
    keys: tuple[str, ...] | None = None
    """All rows that agree in these columns are in one task; None if that is not known."""
    sample: Callable[[Sequence[str] | None], Sample | None] | None = None
    """Reads a few of its rows, if that can be done without a job: these columns of them, or all."""

    def row_wise(self, kernel: RowKernel, schema: pa.Schema, line: str, keys: tuple[str, ...] | None) -> Pipe:
        """Each table by itself."""
        mark = new_mark()
        source = Counted(_EachTable(self.source, kernel), mark)
        found = self.sample

        def sample(_: Sequence[str] | None) -> Sample | None:
            rows = None if found is None else found(None)
            return None if rows is None else _after(kernel, rows)

        stage = self.stage.then(line, mark)
        return replace(self, source=source, schema=schema, stage=stage, keys=keys, sample=sample)

    def timed(self, column: str | None) -> Pipe:
        """The same rows, refused if one of them has no time in this column."""
        return self if column is None else replace(self, source=_EachTable(self.source, PresentTimes(column)))

    def in_place(self, kernel: KeyedKernel, schema: pa.Schema, line: str, keys: tuple[str, ...] | None) -> Pipe:
        """Rows that agree in keys are together already."""
        return self._then(_InPlace(self.source, kernel, self.schema), schema, line, keys)

    def _then(self, source: blocks.Source, schema: pa.Schema, line: str, keys: tuple[str, ...] | None = None) -> Pipe:
        """Another source over this one's tables, counted."""
        mark = new_mark()
        stage = self.stage.then(line, mark)
        return replace(self, source=Counted(source, mark), schema=schema, stage=stage, keys=keys, sample=None)

    def beside(
        self, kernel: KeyedKernel, second: pa.Table, schema: pa.Schema, line: str, second_time: str | None = None
    ) -> Pipe:
        """Rows stay where they are, and each task is given all rows of the second input.

        ``second_time`` is the column in which these have to have a time.
        """
        source = _Beside(self.source, kernel, self.schema, encode(second), second.schema, second_time)
        keys = self.keys if self.keys is not None and set(self.keys) <= set(schema.names) else None
        return self._then(source, schema, line, keys)

    def all_tables(self, kernel: StreamKernel, schema: pa.Schema, line: str) -> Pipe:
        """All tables of a task, one after the other."""
        return self._then(_AllTables(self.source, kernel), schema, line)

    def blocks(self, placement: Placement, side: int = 0, coded: tuple[str, ...] = ()) -> DataFrame:
        """The rows as blocks that know where to go."""
        return blocks.blocks_of(self.frame, self.source, placement, side=side, coded=coded)

    def collect(self, figures: Figures | None = None) -> pa.Table:
        """All rows, here; ``figures`` are given what the tasks did."""
        return blocks.collected(self.frame, self.source, self.schema, figures)


def _after(kernel: RowKernel, sample: Sample) -> Sample:
    table = kernel(sample.table)
    return Sample(table, sample.weight, table.num_rows * sample.weight)


def meeting(
    pipes: Sequence[Pipe],
    placements: Sequence[Placement],
    kernel: KeyedKernel,
    schema: pa.Schema,
    stage: Stage,
    keys: Sequence[tuple[str, ...]] = (),
) -> Pipe:
    """The rows of several pipes, put together by their placements, and a kernel over them.

    ``keys`` are for each pipe the columns whose texts travel as dictionaries.
    """
    buckets = max(p.buckets for p in placements)
    names = [_texts(pipe.schema, some) for pipe, some in zip(pipes, keys or [()] * len(pipes), strict=True)]
    sides = [
        pipe.blocks(place, side, some)
        for side, (pipe, place, some) in enumerate(zip(pipes, placements, names, strict=True))
    ]
    size = pipes[0].size
    for pipe in pipes[1:]:
        size += pipe.size
    sent = tuple(coded(pipe.schema, some) for pipe, some in zip(pipes, names, strict=True))
    mark, arrival = new_mark(), new_mark()
    source = Counted(_Meeting(kernel, tuple(pipe.schema for pipe in pipes), sent, arrival), mark)
    stage = replace(stage, marks=(mark,), arrival=arrival)
    return Pipe(blocks.exchanged(sides, buckets), source, schema, stage, size)


def _texts(schema: pa.Schema, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if pa.types.is_string(schema.field(name).type))


def stacked(pipes: Sequence[Pipe], schema: pa.Schema, stage: Stage) -> Pipe:
    """The rows of several pipes of one schema, in tasks of their own."""
    whole = pipes[0].blocks(ByKeys((), 1))
    for pipe in pipes[1:]:
        whole = whole.unionAll(pipe.blocks(ByKeys((), 1)))
    size = pipes[0].size
    for pipe in pipes[1:]:
        size += pipe.size
    mark = new_mark()
    return Pipe(whole, Counted(_Stacked(schema), mark), schema, replace(stage, marks=(mark,)), size)


# ---------------------------------------------------------------------- what tasks do


@dataclass(frozen=True, slots=True)
class _EachTable:
    before: blocks.Source
    kernel: RowKernel

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for table in self.before(batches):
            if table.num_rows:
                yield self.kernel(table)


@dataclass(frozen=True, slots=True)
class _AllTables:
    before: blocks.Source
    kernel: StreamKernel

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return self.kernel(self.before(batches))


@dataclass(frozen=True, slots=True)
class _InPlace:
    before: blocks.Source
    kernel: KeyedKernel
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        yield from self.kernel(Rows(self.before(batches), self.schema))


@dataclass(frozen=True, slots=True)
class _Beside:
    before: blocks.Source
    kernel: KeyedKernel
    schema: pa.Schema
    second: Block
    second_schema: pa.Schema
    second_time: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        table = decode(self.second, self.second_schema)
        if self.second_time is not None:
            PresentTimes(self.second_time)(table)
        second = Rows([table], self.second_schema)
        yield from self.kernel(Rows(self.before(batches), self.schema), second)


@dataclass(frozen=True, slots=True)
class _Meeting:
    kernel: KeyedKernel
    schemas: tuple[pa.Schema, ...]
    sent: tuple[pa.Schema, ...]
    arrival: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        arrived = Arrived(batches, self.sent)
        sides = [counted_tables(self.arrival, partial(arrived.tables, i)) for i in range(len(self.schemas))]
        yield from self.kernel(*[Rows(side, schema) for side, schema in zip(sides, self.schemas, strict=True)])


@dataclass(frozen=True, slots=True)
class _Stacked:
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return Arrived(batches, (self.schema,)).tables(0)


@dataclass(frozen=True, slots=True)
class Batches:
    """Rows that Spark hands over, as tables of these columns."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            yield pa.Table.from_batches([batch]).cast(self.schema)
