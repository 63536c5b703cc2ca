"""Small files: the rows of a small change as one data file, or as one file of the change feed, at little more than the
price of their bytes.

`data_files` streams rows to files that may grow large. A small change is one batch that is in memory, so its file is
made there and put on storage in one call, and what only depends on the table (its columns inside files, how they are
encoded) is worked out once. The path is chosen before the file is written, so that others can be told of it meanwhile.

Small files are put together with others soon. So they have a codec that costs next to nothing, and only texts have
dictionaries.

They are written without flushing: the commit that names them sees to it that they are on the disk
(`Proposal.unflushed`).
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base import faults
from headwater.base.storage import Storage, now_ms
from headwater.lake import partitions, stats
from headwater.lake.actions import Action, AddFile, Metadata
from headwater.lake.data_files import CHANGE_TYPE, Layout, encodings, file_stats
from headwater.lake.physical import to_physical

__all__ = ["new_path", "write_feed", "write_rows"]

_COMPRESSION = "snappy"
_KIND = pa.field(CHANGE_TYPE, pa.string(), False)


def new_path(prefix: str, *, feed: bool = False) -> str:
    """A path for a file, below the table's own folder.

    >>> new_path("view-7").rsplit(".", 3)[1:]
    ['c000', 'snappy', 'parquet']
    """
    name = f"{prefix}-00000-{uuid.uuid4()}.c000.{_COMPRESSION}.parquet"
    return f"_change_data/{name}" if feed else name


def write_rows(storage: Storage, metadata: Metadata, rows: pa.RecordBatch, path: str) -> AddFile:
    """Write rows, with the columns of a table that is not partitioned, to a new file."""
    written = _written(metadata)
    physical = written.physical(rows, written.schema)
    footer, size = _put(storage, path, physical, written.options, statistics=True)
    described = file_stats(written.layout, footer, stats.nan_free_columns(physical))
    return AddFile(partitions.encode_path(path), {}, size, now_ms(), True, described)


def write_feed(storage: Storage, metadata: Metadata, rows: pa.RecordBatch, path: str, *, deleted: int) -> Action:
    """Write rows of which the first ``deleted`` were deleted, and the others inserted,
    to a new file of the change feed.
    """
    written = _written(metadata)
    kinds = pa.concat_arrays(
        [pa.repeat(pa.scalar("delete"), deleted), pa.repeat(pa.scalar("insert"), rows.num_rows - deleted)]
    )
    physical = written.physical(rows, written.feed_schema, kinds)
    _, size = _put(storage, path, physical, written.feed_options, statistics=False)
    body = {"path": partitions.encode_path(path), "partitionValues": {}, "size": size, "dataChange": False}
    return {"cdc": body}


def _put(
    storage: Storage, path: str, rows: pa.RecordBatch, options: dict[str, Any], *, statistics: bool
) -> tuple[Any, int]:
    """Write one file; gives its footer and its size."""
    sink = pa.BufferOutputStream()
    footers: list[Any] = []
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression=_COMPRESSION,
        write_statistics=statistics,
        metadata_collector=footers,
        **options,
    ) as writer:
        writer.write_batch(rows)
    data = sink.getvalue()
    faults.point("lake.data_file.before_publish", path)
    storage.put(path, data.to_pybytes(), flush=False)
    faults.point("lake.data_file.after_publish", path)
    return footers[0], data.size


class _Written:
    """What all small files of a table share."""

    def __init__(self, metadata: Metadata) -> None:
        assert not metadata.partition_columns, "rows of a partitioned table go to a file for each partition"
        self.layout = Layout(metadata)
        self.schema = self.layout.file_schema()
        self.feed_schema = self.schema.append(_KIND)
        self.options, self.feed_options = _options(self.schema), _options(self.feed_schema)

    def physical(self, rows: pa.RecordBatch, schema: pa.Schema, *more: pa.Array) -> pa.RecordBatch:
        """Rows as files hold them."""
        mapped = self.layout.mapped
        arrays = [to_physical(a, f, mapped=mapped) for a, f in zip(rows.columns, self.layout.in_files, strict=True)]
        return pa.RecordBatch.from_arrays([*arrays, *more], schema=schema)


def _options(schema: pa.Schema) -> dict[str, Any]:
    found = encodings(schema)
    floats = {f.name for f in schema if pa.types.is_floating(f.type)}
    return {**found, "use_dictionary": [p for p in found["use_dictionary"] if p not in floats] or False}


class _Same:
    """A table's metadata, the same object: it is one from commit to commit, until it changes."""

    __slots__ = ("metadata",)

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata

    def __hash__(self) -> int:
        return id(self.metadata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.metadata is self.metadata


def _written(metadata: Metadata) -> _Written:
    return _written_of(_Same(metadata))


@lru_cache(maxsize=64)
def _written_of(same: _Same) -> _Written:
    return _Written(same.metadata)
