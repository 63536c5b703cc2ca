"""Building a base with Spark: tasks read the source in shares, rows go to parts by the hash of their key, and a task
writes the record file of each part.

What moves between tasks are blocks (`headwater.spark.blocks`). The driver sees the names of the files. A task that is
run twice leaves a file that no commit names, which the next refresh sweeps.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import StorageError
from headwater.base.storage import Storage
from headwater.lake.actions import AddFile
from headwater.lake.scan import read_file
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.tasks import without_files
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, sampled, split_by_part, to_stored
from headwater.serving.keys import KeyCodec
from headwater.serving.layout import Layout
from headwater.serving.online.definition import Definition
from headwater.serving.record import LayerEntry
from headwater.serving.store import OnlineStore
from headwater.spark import blocks

if TYPE_CHECKING:
    from headwater.derived.environment import Environment

__all__ = ["build_base", "is_large"]

_PART_ROWS = 4_000_000
_FEW_PARTS = 8
_SHARE_BYTES = 32 << 20
_PASSED_ON = ("fsync", "spill_dir")


def is_large(rows: int) -> bool:
    """Whether a table of so many rows is built by Spark, where there is a session."""
    return rows >= settings.current().online_spark_rows


def build_base(
    meant: Definition, store: OnlineStore, base: Snapshot, rows: int, number: int, environment: Environment
) -> LayerEntry:
    """A base of all rows of the source, built by tasks."""
    assert environment.session is not None
    session = environment.session()
    names, files = meant.stored.names, tuple(base.files.values())
    head, _ = sampled(b for f in files[:4] for b in _rows_of(without_files(base), f, names, meant.stored))
    layout = layout_of(meant.stored, meant.key, head, ordered=meant.order_by is not None)
    shape = Shape(layout, new_seed(), meant.parts or max(_FEW_PARTS, -(-rows // _PART_ROWS)), meant.order_by)
    shares = _shares(files)
    reading = _Reading(without_files(base), tuple(shares), tuple(names), meant.stored)
    frame, source = blocks.tasks_of(session, len(shares), reading)
    placed = blocks.blocks_of(frame, source, _ByPart(shape))
    chosen = {k: v for k, v in asdict(settings.current()).items() if k in _PASSED_ON}
    sink = _ToFile(shape, store.root, store.folder.path, number, base.where, chosen)
    found = blocks.results_of(blocks.exchanged([placed], shape.parts), _Coming(meant.stored), sink, "written string")
    written = sorted((json.loads(text) for text in found["written"].to_pylist()), key=lambda one: int(one["part"]))
    assert [one["part"] for one in written] == list(range(shape.parts)), "every part has a file"
    missing = [one["file"] for one in written if not store.root.exists(f"{store.folder.path}/{one['file']}")]
    if missing:
        why = (
            f"{len(missing)} of {len(written)} files that tasks wrote are not here; executors on other machines "
            "need a storage that all share"
        )
        raise StorageError.failed(store.root.url, why)
    sums = [sum(int(one[name]) for one in written) for name in ("rows", "tombstones", "bytes")]
    return LayerEntry(tuple(str(one["file"]) for one in written), *sums)


def _shares(files: Sequence[AddFile]) -> list[str]:
    """The files of each task, as JSON."""
    shares: list[list[Any]] = []
    size = 0
    for f in files:
        if not shares or size + f.size > _SHARE_BYTES:
            shares.append([])
            size = 0
        shares[-1].append(f.to_action()["add"])
        size += f.size
    return [json.dumps(share) for share in shares]


def _rows_of(base: Snapshot, file: AddFile, names: Sequence[str], stored: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in read_file(base, file, list(names)):
        if batch.num_rows:
            yield to_stored(batch, stored)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the n-th task reads."""

    base: Snapshot
    shares: tuple[str, ...]
    names: tuple[str, ...]
    stored: pa.Schema

    def __call__(self, number: int) -> Iterator[pa.Table]:
        for action in json.loads(self.shares[number]):
            for batch in _rows_of(self.base, AddFile.from_json(action), self.names, self.stored):
                yield pa.Table.from_batches([batch])


@dataclass(frozen=True, slots=True)
class _ByPart:
    """Sends rows to the part that the hash of their key says."""

    shape: Shape

    @property
    def buckets(self) -> int:
        return self.shape.parts

    def __call__(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        table = table.combine_chunks()
        layout: Layout = self.shape.layout
        arrays = [table.column(p.name).chunk(0) for p in layout.key]
        keys = KeyCodec(layout.key).encode(arrays)
        order, ends = [], []
        for part, positions in split_by_part(keys, self.shape):
            order.append(positions)
            ends.append((part, len(positions)))
        moved = table.take(pa.array(np.concatenate(order)))
        begin = 0
        for part, count in ends:
            yield part, moved.slice(begin, count)
            begin += count


@dataclass(frozen=True, slots=True)
class _Coming:
    """The rows that came to a task."""

    stored: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return blocks.Arrived(batches, [self.stored]).tables(0)


@dataclass(frozen=True, slots=True)
class _ToFile:
    """Writes the record file of a part."""

    shape: Shape
    root: Storage
    folder: str
    number: int
    where: str
    chosen: dict[str, Any]

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        part = blocks.task_number()
        name = f"{self.number:010d}-{part:04d}-{uuid.uuid4().hex}.records"
        own = Shape(self.shape.layout, self.shape.seed, 1, self.shape.order_by)
        rows = itertools.chain.from_iterable(table.to_batches() for table in tables)
        with settings.override(**self.chosen), tempfile.TemporaryDirectory(prefix="headwater-online-") as spill:
            local = self.root.local_path(f"{self.folder}/{name}")
            path = local or os.path.join(spill, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            (written,) = build_layer(rows, own, lambda _: path, where=self.where)
            if local is None:
                with open(path, "rb") as source, self.root.open_output(f"{self.folder}/{name}") as to:
                    while piece := source.read(8 << 20):
                        to.write(piece)
        said = {"part": part, "file": name, "rows": written.rows, "tombstones": 0, "bytes": written.bytes}
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(said)], pa.string())], names=["written"])
