"""Loading: the rows of a partition as a stream of batches, checked on the way.

Files are read one after the other, a row group at a time, so that memory does not grow with the partition. Whatever is
wrong with a file is a `PartitionError` that names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base.errors import HeadwaterError, NotFoundError, PartitionError
from headwater.base.storage import Entry, Storage
from headwater.serving.building import to_stored
from headwater.serving.config import TableConfig
from headwater.serving.folder.discovery import Partition
from headwater.serving.folder.validation import Expected

__all__ = ["Loading"]

_ROWS = 65_536


class Loading:
    """Reads one partition for a table: first `expected`, then `batches`."""

    def __init__(self, root: Storage, partition: Partition, table: TableConfig) -> None:
        self.root, self.partition, self.table = root, partition, table
        self.rows = 0
        """How many rows have been read."""
        if partition.nested:
            raise PartitionError.unreadable(
                f"Parquet files lie in a folder inside it: {partition.nested[0]}", root.location(partition.name)
            )
        first = partition.files[0]
        with self._opened(first) as file:
            self.expected = Expected.of(table, file.schema_arrow, self._where(first))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, with the columns and types that are stored."""
        expected = self.expected
        for entry in self.partition.files:
            where = self._where(entry)
            with self._opened(entry) as file:
                expected.check_schema(file.schema_arrow, where)
                for batch in file.iter_batches(batch_size=_ROWS, columns=expected.names):
                    expected.check_nulls(batch, where)
                    self.rows += batch.num_rows
                    yield to_stored(batch, expected.schema)

    @contextmanager
    def _opened(self, entry: Entry) -> Iterator[pq.ParquetFile]:
        where = self._where(entry)
        try:
            with self.root.open_input(entry.path, size=entry.size) as source:
                yield pq.ParquetFile(source)
        except NotFoundError:
            raise PartitionError.changed(self.partition.name, self.root.url) from None
        except HeadwaterError:
            raise
        except (pa.ArrowException, OSError, ValueError) as e:
            text = str(e).strip().split("\n", 1)[0][:200]
            raise PartitionError.unreadable(f"a file cannot be read: {text}", where) from e

    def _where(self, entry: Entry) -> str:
        return self.root.location(entry.path)
