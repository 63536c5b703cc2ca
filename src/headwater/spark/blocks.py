"""Blocks on Spark: tasks that hand each other Arrow tables through Spark's own shuffle.

The problem: most of what Spark spends on moving rows between tasks and Python is spent on single rows. The idea: what
it moves is blocks of many rows (`block_format`), as values of a column. A row of Spark's is

    bucket int     where the rows have to go; the number of a partition after an exchange
    side   int     which input of the next operator they are
    origin long    the task that made the block and its number there; so blocks have an order whoever is first
    size   long    and
    block  binary  what `block_format` says

A row whose side is -1 has no rows of the operators, but what the task did (`figures`), as text; it goes to the first
bucket.

Spark sees an ordinary DataFrame, lazy, with several exchanges if need be: its scheduler, its shuffle with spilling and
checksums, its retries and its lineage do the rest. A task that is run again makes the same blocks with the same
origins.

A stage is what one task does: a `Source` of tables (what it reads, or the blocks that came to it), and a sink, which
makes blocks for an exchange, rows for Spark or blocks for the driver. Tasks keep to one thread. They import this
package: where it is not installed, it is shipped (`shipping`).
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.dictionaries import encoded
from headwater.spark.block_format import Block, decode, encode
from headwater.spark.buckets import bucket_of
from headwater.spark.failures import carried, told
from headwater.spark.figures import SAID, Figures, SaidAlone, SaidBeside, current, recorded
from headwater.spark.plain_struct import plain_struct
from headwater.spark.shipping import with_package

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "Arrived",
    "ByKeys",
    "Placement",
    "Sink",
    "Source",
    "blocks_of",
    "collected",
    "exchanged",
    "results_of",
    "rows_of",
    "sent",
    "split",
    "streamed",
    "task_number",
    "tasks_of",
]

BLOCK_COLUMNS = "bucket int, side int, origin long, size long, block binary"
_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("side", pa.int32()),
        ("origin", pa.int64()),
        ("size", pa.int64()),
        ("block", pa.binary()),
    ]
)
_GATHER_BYTES = 64 << 20
_HELD_BYTES = 256 << 20
_ROW_BYTES = 4 << 20
_HEAD_ROWS = 1_024
_SAID = -1
"""The side of what is no rows, but figures."""
_REPEATED = 2
"""How often each text of a dictionary has to occur in a block, on average."""

Tables = Iterator[pa.Table]
Source = Callable[[Iterator[pa.RecordBatch]], Tables]
"""How a task gets its tables from what Spark gives it."""
Sink = Callable[[Tables], Iterator[pa.RecordBatch]]


class Placement(Protocol):
    """Says where the rows of a table have to go."""

    @property
    def buckets(self) -> int:
        """How many places there are."""

    def __call__(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each place; a row may go to several."""


@dataclass(frozen=True, slots=True)
class ByKeys:
    """Rows that agree in the keys go to one place; without keys, all go to one."""

    keys: tuple[str, ...]
    buckets: int

    def __call__(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        if self.buckets == 1 or not self.keys:
            yield 0, table
            return
        yield from split(table, bucket_of(table, self.keys, self.buckets), self.buckets)


def split(table: pa.Table, places: Any, count: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each place, in the order they have."""
    places = places.astype(np.uint16 if count <= 1 << 16 else np.int32)
    order = np.argsort(places, kind="stable")
    moved = table.combine_chunks().take(pa.array(order))
    ends = np.cumsum(np.bincount(places, minlength=count))
    start = 0
    for place, end in enumerate(ends.tolist()):
        if end > start:
            yield place, moved.slice(start, end - start)
        start = end


# ---------------------------------------------------------------------- what a task does


@dataclass(frozen=True, slots=True)
class _Stage:
    """A task: its source, what becomes of the tables, and how it says what it did, if it does.

    What goes through an exchange must be the same whenever the task is run again: Spark compares checksums, and gives
    the job up where they differ. So only a stage whose output comes to the driver says how long it took (``timed``).
    """

    source: Source
    sink: Sink
    report: Callable[[str], pa.RecordBatch] | None = None
    timed: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark runs as many tasks at once as there are cores.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        pa.set_cpu_count(1)
        pa.set_io_thread_count(2)
        with carried():
            yield from recorded(lambda figures: self._work(batches, figures))

    def _work(self, batches: Iterator[pa.RecordBatch], figures: Figures) -> Iterator[pa.RecordBatch]:
        yield from self.sink(self.source(batches))
        text = figures.text(timed=self.timed)
        if self.report is not None and text:
            yield self.report(text)


@dataclass(frozen=True, slots=True)
class _ToBlocks:
    """Blocks for an exchange: gathered until they are large, then one for each place."""

    placement: Placement
    side: int
    compress: bool
    coded: tuple[str, ...] = ()

    def __call__(self, tables: Tables) -> Iterator[pa.RecordBatch]:
        number = itertools.count(task_number() << 32)
        for table in _gathered(tables, _GATHER_BYTES):
            for bucket, rows in self.placement(_with_codes(table, self.coded, self.placement.buckets)):
                block = encode(rows, compress=self.compress, described=bool(self.coded))
                yield _row(bucket, self.side, next(number), block)


Sent = tuple[int, int, pa.Table]
"""A bucket, a side, and rows that go there."""


@dataclass(frozen=True, slots=True)
class _Sending:
    """Blocks of rows that know already where they go."""

    compress: bool

    def __call__(self, pieces: Iterator[Sent]) -> Iterator[pa.RecordBatch]:
        number = itertools.count(task_number() << 32)
        for bucket, side, rows in pieces:
            yield _row(bucket, side, next(number), encode(rows, compress=self.compress))


def _with_codes(table: pa.Table, names: Iterable[str], buckets: int) -> pa.Table:
    """Texts as dictionaries, where there are so few that each block can have all of them."""
    for name in names:
        column = table.column(name)
        head = column.slice(0, _HEAD_ROWS)
        if not pa.types.is_dictionary(column.type) and 2 * pc.count_distinct(head).as_py() > len(head):
            continue
        made = encoded(column)
        few = len(made.dictionary) * buckets * _REPEATED <= table.num_rows
        table = table.set_column(table.schema.get_field_index(name), name, made if few else _values(column))
    return table


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _row(bucket: int, side: int, origin: int, block: Block) -> pa.RecordBatch:
    ends = pa.py_buffer(np.array([0, block.data.size], np.int32))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([bucket], pa.int32()),
            pa.array([side], pa.int32()),
            pa.array([origin], pa.int64()),
            pa.array([block.size], pa.int64()),
            pa.Array.from_buffers(pa.binary(), 1, [None, ends, block.data]),
        ],
        schema=_SCHEMA,
    )


def _said(text: str) -> pa.RecordBatch:
    """What a task did, as a row among its blocks."""
    return _row(0, _SAID, task_number() << 32, Block(0, pa.py_buffer(text.encode())))


def _blocks_in(batch: pa.RecordBatch | pa.Table) -> Iterator[tuple[int, Block]]:
    """The blocks of some of Spark's rows, each with its origin."""
    origins, sizes = batch.column("origin").to_pylist(), batch.column("size").to_pylist()
    for origin, size, data in zip(origins, sizes, batch.column("block"), strict=True):
        yield origin, Block(size, data.as_buffer())


def _gathered(tables: Tables, size: int) -> Tables:
    held: list[pa.Table] = []
    held_bytes = 0
    for table in tables:
        if not table.num_rows:
            continue
        held.append(table)
        held_bytes += table.nbytes
        if held_bytes >= size:
            yield pa.concat_tables(held)
            held, held_bytes = [], 0
    if held:
        yield pa.concat_tables(held)


def task_number() -> int:
    """The number of this task in its stage."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


@dataclass(frozen=True, slots=True)
class _ToRows:
    """Rows for Spark, with exactly the types that its schema has."""

    schema: pa.Schema

    def __call__(self, tables: Tables) -> Iterator[pa.RecordBatch]:
        for table in tables:
            if table.num_rows:
                yield from table.cast(self.schema).to_batches()


@dataclass(frozen=True, slots=True)
class _Read:
    """What a task reads: the work of its number."""

    work: Callable[[int], Tables]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Tables:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.work(number)


class Arrived:
    """The blocks that came to a task after an exchange, by side, in the order of their origins.

    They are kept as they came up to a limit; beyond it they go to a file, which is mapped, so a task holds about what
    it decodes.
    """

    def __init__(
        self, batches: Iterator[pa.RecordBatch], schemas: Sequence[pa.Schema], held_bytes: int = _HELD_BYTES
    ) -> None:
        self._schemas = list(schemas)
        self._found: list[list[tuple[int, Block]]] = [[] for _ in schemas]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        held = 0
        waiting: list[tuple[int, int, Block]] = []
        for batch in batches:
            for side, (origin, block) in zip(batch.column("side").to_pylist(), _blocks_in(batch), strict=True):
                if side == _SAID:
                    current().merge(block.data.to_pybytes().decode())
                    continue
                waiting.append((side, origin, block))
                held += block.data.size
            if held > held_bytes:
                self._write(waiting)
                waiting, held = [], 0
        for side, origin, block in waiting:
            self._found[side].append((origin, block))
        for blocks in self._found:
            blocks.sort(key=lambda block: block[0])

    def _write(self, blocks: list[tuple[int, int, Block]]) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="headwater-blocks-", ignore_cleanup_errors=True)
        path = os.path.join(self._folder.name, f"{len(os.listdir(self._folder.name))}.blocks")
        with pa.OSFile(path, "wb") as sink:
            for _, _, block in blocks:
                sink.write(block.data)
        mapped = pa.memory_map(path).read_buffer()
        at = 0
        for side, origin, block in blocks:
            self._found[side].append((origin, block._replace(data=mapped.slice(at, block.data.size))))
            at += block.data.size

    def tables(self, side: int) -> Tables:
        """The rows of one side, block by block; a block is let go when the next is asked for."""
        blocks, self._found[side] = self._found[side], []
        blocks.reverse()
        while blocks:
            yield decode(blocks.pop()[1], self._schemas[side])

    def bytes(self, side: int) -> int:
        """How large the blocks of a side are."""
        return sum(block.data.size for _, block in self._found[side])


# ---------------------------------------------------------------------- what the driver does


def tasks_of(session: SparkSession, count: int, work: Callable[[int], Tables]) -> tuple[DataFrame, Source]:
    """``count`` tasks that begin by themselves: the n-th does ``work(n)``."""
    return session.range(0, max(count, 1), 1, max(count, 1)), _Read(work if count else _nothing)


def _nothing(_: int) -> Tables:
    return iter(())


def blocks_of(
    frame: DataFrame, source: Source, placement: Placement, *, side: int = 0, coded: tuple[str, ...] = ()
) -> DataFrame:
    """The tables of each task, as blocks that know where to go; texts in the columns ``coded`` as dictionaries."""
    # What stays on this machine is not compressed at all: that costs more than to write it.
    session = frame.sparkSession
    with_package(session)
    compress = session.conf.get("spark.shuffle.compress", "true") == "false" and not _is_local(session)
    timed = isinstance(placement, _Here)
    stage = _Stage(source, _ToBlocks(placement, side, compress, coded), _said, timed)
    return frame.mapInArrow(stage, plain_struct(BLOCK_COLUMNS))


def sent(frame: DataFrame, source: Callable[[Iterator[pa.RecordBatch]], Iterator[Sent]]) -> DataFrame:
    """What tasks send to several places at once, as blocks: the bucket, the side, and the rows of each."""
    session = frame.sparkSession
    with_package(session)
    compress = session.conf.get("spark.shuffle.compress", "true") == "false" and not _is_local(session)
    return frame.mapInArrow(_Stage(source, _Sending(compress), _said, timed=False), plain_struct(BLOCK_COLUMNS))


def _is_local(session: SparkSession) -> bool:
    return str(session.conf.get("spark.master", "")).startswith("local")


def exchanged(sides: Sequence[DataFrame], buckets: int) -> DataFrame:
    """Blocks of several sides, each in the partition that its bucket says."""
    from pyspark.sql import functions as sf

    whole = sides[0]
    for side in sides[1:]:
        whole = whole.unionAll(side)
    return whole.repartitionById(buckets, sf.col("bucket"))


def results_of(frame: DataFrame, source: Source, sink: Sink, column: str, figures: Figures | None = None) -> pa.Table:
    """What a sink of one's own makes of the tables of each task, here.

    ``column`` is the one column that it gives, ``name type`` in Spark's words.
    ``figures`` are given what the tasks did.
    """
    with_package(frame.sparkSession)
    stage = _Stage(source, SaidBeside(sink), SaidAlone.beside(column))
    with told():
        found = frame.mapInArrow(stage, plain_struct(f"{column}, {SAID} string")).toArrow()
    if figures is not None:
        for text in found.column(SAID).drop_null().to_pylist():
            figures.merge(text)
    return found.filter(pc.is_null(found.column(SAID))).drop_columns([SAID])


def rows_of(frame: DataFrame, source: Source, schema: pa.Schema, struct: StructType) -> DataFrame:
    """The tables of each task as rows of Spark's: ``struct`` in its words, ``schema`` in Arrow's."""
    with_package(frame.sparkSession)
    return frame.mapInArrow(_Stage(source, _ToRows(schema)), struct)


@dataclass(frozen=True, slots=True)
class _Here:
    """Everything to one place, in pieces of a size that the driver takes well."""

    buckets: int = 1

    def __call__(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        rows = max(1, table.num_rows * _ROW_BYTES // max(1, table.nbytes))
        for start in range(0, table.num_rows, rows):
            yield 0, table.slice(start, rows)


def collected(frame: DataFrame, source: Source, schema: pa.Schema, figures: Figures | None = None) -> pa.Table:
    """The tables of all tasks, here: in the order of the tasks. ``figures`` are given what the tasks did."""
    with told():
        found = blocks_of(frame, source, _Here()).select("side", "origin", "size", "block").toArrow()
    said = pc.equal(found.column("side"), _SAID)
    if figures is not None:
        for text in found.filter(said).column("block").to_pylist():
            figures.merge(text.decode())
    blocks = sorted(_blocks_in(found.filter(pc.invert(said))), key=lambda block: block[0])
    return pa.concat_tables([schema.empty_table(), *(decode(block, schema) for _, block in blocks)])


def streamed(frame: DataFrame, source: Source, schema: pa.Schema, figures: Figures | None = None) -> Iterator[pa.Table]:
    """The tables of all tasks, here, one after the other: a task is asked for when the one before was taken."""
    rows = blocks_of(frame, source, _Here()).select("side", "size", "block")
    for row in rows.toLocalIterator(prefetchPartitions=True):
        if row["side"] == _SAID:
            if figures is not None:
                figures.merge(bytes(row["block"]).decode())
            continue
        yield decode(Block(row["size"], pa.py_buffer(bytes(row["block"]))), schema)
