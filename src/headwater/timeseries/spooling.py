"""Tables that are read a second time, in bounded memory: held while they are few, and in a file when they are more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pyarrow as pa

__all__ = ["Spool"]


class Spool:
    """Tables of one schema: `add` them all, then iterate, as often as needed; nothing is left of them at the end of
    ``with``.

    >>> with Spool(pa.schema([("v", pa.int64())]), budget_bytes=8) as spool:
    ...     spool.add(pa.table({"v": [1, 2]}))
    ...     spool.add(pa.table({"v": [3]}))
    ...     [table["v"].to_pylist() for table in spool]
    [[1, 2], [3]]
    """

    def __init__(self, schema: pa.Schema, *, budget_bytes: int) -> None:
        self._schema, self._budget_bytes = schema, budget_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._folder: Path | None = None
        self._writer: pa.RecordBatchWriter | None = None
        self._batches: list[int] = []
        """How many of the file's batches each table is."""

    def add(self, table: pa.Table) -> None:
        """One more table."""
        if self._writer is None:
            self._held.append(table)
            self._held_bytes += table.nbytes
            if self._held_bytes <= self._budget_bytes:
                return
            self._folder = Path(tempfile.mkdtemp(prefix="headwater-spool-"))
            self._writer = pa.ipc.new_file(str(self._path), self._schema)
            for held in self._held:
                self._write(held)
            self._held = []
            return
        self._write(table)

    def _write(self, table: pa.Table) -> None:
        assert self._writer is not None
        batches = table.combine_chunks().to_batches()
        for batch in batches:
            self._writer.write_batch(batch)
        self._batches.append(len(batches))

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return self._folder / "tables.arrow"

    def __iter__(self) -> Iterator[pa.Table]:
        if self._writer is None:
            yield from self._held
            return
        self._writer.close()
        with pa.memory_map(str(self._path)) as source:
            file = pa.ipc.open_file(source)
            at = 0
            for count in self._batches:
                yield pa.Table.from_batches([file.get_batch(at + i) for i in range(count)], self._schema)
                at += count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held = []
        if self._folder is not None:
            assert self._writer is not None
            self._writer.close()
            shutil.rmtree(self._folder, ignore_errors=True)
