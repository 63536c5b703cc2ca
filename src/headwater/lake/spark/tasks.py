"""Tasks that read and write data files by themselves, with Arrow.

Where Spark has no way to a storage, its tasks have: each opens the storage with this package and works on files as the
lake itself does (`scan`, `data_files`), so rows mean the same on every path. Spark still schedules, retries and moves
the rows; it just does not see columns and filters inside, so `read` is told of them before.

Storage options may hold secrets. They travel inside the pickled function that Spark ships to tasks, never as data, as
options or as settings, so no plan and no web page shows them. Where tasks run without the package, it is shipped
(`headwater.spark.shipping`).

Written files are committed by the driver, from the actions that the job's result brings. A task that is tried twice
leaves the files of its other try behind, and since no action names them, they are for vacuum to find.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base import settings
from headwater.base.schema import Field
from headwater.base.storage import Storage
from headwater.lake import data_files
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.physical import to_logical
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.types import loose_field, spark_struct
from headwater.spark.shipping import with_package
from headwater.sql.conjuncts import Conjunct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read", "shaped", "without_files", "write"]

_TASK_BYTES = 32 << 20
_FEW_TASKS = 32
_MOST_SHOWN_BYTES = 256 << 20
_PASSED_ON = ("parquet_compression", "row_group_rows", "target_file_bytes")


def without_files(now: Snapshot) -> Snapshot:
    """The snapshot as a task needs it: what the table is, not which files it has."""
    return Snapshot(now.storage, replace(now.state, files={}, txns={}, domains={}, tombstones=None, newest=None))


def shaped(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
    """A batch with exactly the Arrow types that Spark expects of these columns."""
    arrays = [to_logical(batch.column(f.name), f.type, mapped=False) for f in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([f.arrow for f in fields]))


def read(
    session: SparkSession,
    now: Snapshot,
    files: Sequence[AddFile],
    names: list[str],
    conjuncts: Sequence[Conjunct] = (),
) -> DataFrame:
    """The live rows of ``files``, read by tasks."""
    struct = spark_struct(now.schema, names)
    if not files:
        return session.createDataFrame([], struct)
    base, fields = without_files(now), [loose_field(now.schema.field(n)) for n in names]
    shares = [json.dumps([f.to_action()["add"] for f in share]) for share in _shares(files)]

    def read_share(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from headwater.lake.scan import read_file

        for batch in batches:
            for number in batch.column(0).to_pylist():
                for action in json.loads(shares[number // step]):
                    for rows in read_file(base, AddFile.from_json(action), names, conjuncts=conjuncts):
                        yield shaped(rows, fields)

    # Spark guesses the size of the result from the size of its source, and sends small sides of a join to every
    # executor. So the source is as long as the table is large, and all but one number of each task is dropped.
    shown = min(sum(f.size for f in files), _MOST_SHOWN_BYTES)
    step = max(1, shown // 8 // len(shares))
    numbers = session.range(0, step * len(shares), 1, len(shares))
    if step > 1:
        numbers = numbers.where(f"id % {step} = 0")
    with_package(session)
    return numbers.mapInArrow(read_share, struct)


def _shares(files: Sequence[AddFile]) -> list[list[AddFile]]:
    """The files of each task: about as many bytes each, the largest files first."""
    total = sum(f.size for f in files)
    count = max(1, min(len(files), max(_FEW_TASKS, -(-total // _TASK_BYTES))))
    shares: list[list[AddFile]] = [[] for _ in range(count)]
    sizes = [(0, i) for i in range(count)]
    import heapq

    for f in sorted(files, key=lambda f: f.size, reverse=True):
        size, i = heapq.heappop(sizes)
        shares[i].append(f)
        heapq.heappush(sizes, (size + f.size + 1, i))
    return shares


def write(frame: DataFrame, storage: Storage, metadata: Metadata) -> list[AddFile]:
    """Write ``frame``, which has exactly the table's columns, to new files; the actions that add them."""
    fields = list(metadata.schema.fields)
    chosen: dict[str, Any] = {k: v for k, v in asdict(settings.current()).items() if k in _PASSED_ON}

    def write_share(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with settings.override(**chosen):
            rows = (shaped(b, [Field(f.name, f.type) for f in fields]) for b in batches)
            adds = data_files.write_rows(storage, data_files.Layout(metadata), rows)
        texts = [json.dumps(f.to_action()["add"]) for f in adds]
        yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["add"])

    with_package(frame.sparkSession)
    found = frame.mapInArrow(write_share, "add string").toArrow()
    return [AddFile.from_json(json.loads(text)) for text in found["add"].to_pylist()]
