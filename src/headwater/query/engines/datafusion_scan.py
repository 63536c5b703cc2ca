"""A source as a relation of DataFusion: Parquet files straight from the disk, or rows in memory.

DataFusion reads a folder and not a list of files, so each query gets a folder of links: the file number ``n`` of a
source is ``headwater_file=n/data.parquet``, and DataFusion gives every row the number of its file. What is not in the
files is joined by that number: partition values, and with the row's place in the file also the deletion vectors. The
schema given is the table's, so that columns which older files lack or hold in a narrower type come out as the table
says today.

Invariant: a link is made only to a file that is there; DataFusion would pass over a broken one in silence.
"""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.lake import deletion_vectors
from headwater.lake.actions import AddFile
from headwater.lake.scan import live_vector
from headwater.query.sources import Source, TableSource
from headwater.sql.quoting import quote_identifier

if TYPE_CHECKING:
    from datafusion import SessionContext

__all__ = ["FILE", "Relations"]

FILE = "headwater_file"
_ROW = "headwater_row"
_numbers = itertools.count(1)


@lru_cache(maxsize=1)
def _links() -> Path:
    """The folder for the links of this process."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-links-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@dataclass
class Relations:
    """The relations of one query in a session; `close` takes them away again."""

    session: SessionContext
    partitions: int
    folders: dict[str, tuple[TableSource, list[AddFile]]] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)

    def sql(self, source: Source) -> str:
        """What stands after FROM."""
        if isinstance(source, TableSource) and source.paths is not None and source.files:
            whole = [a for a in source.files if a.deletion_vector is None]
            marked = [a for a in source.files if a.deletion_vector is not None]
            parts = [self._select(source, whole, marked=False)] if whole else []
            parts += [self._select(source, marked, marked=True)] if marked else []
            return f"({' UNION ALL '.join(parts)})"
        batches = [b for b in source.batches() if b.num_rows]
        return self._rows(batches, source.schema)

    def close(self) -> None:
        while self._names:
            self.session.deregister_table(self._names.pop())
        while self.folders:
            shutil.rmtree(self.folders.popitem()[0], ignore_errors=True)

    def _name(self) -> str:
        name = f"headwater_{next(_numbers)}"
        self._names.append(name)
        return name

    def _rows(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> str:
        name = self._name()
        # One list for each of the threads that will read it.
        split = [list(batches[i :: self.partitions]) for i in range(self.partitions)]
        empty = [pa.RecordBatch.from_pylist([], schema=schema)]
        self.session.register_record_batches(name, [part for part in split if part] or [empty])
        return name

    def _files(self, source: TableSource, files: Sequence[AddFile]) -> str:
        assert source.paths is not None
        place = dict(zip((a.path for a in source.files), source.paths, strict=True))
        name = self._name()
        folder = _links() / name
        self.folders[str(folder)] = (source, list(files))
        for number, add in enumerate(files):
            target = Path(place[add.path])
            if not target.is_file():
                raise NotFoundError.data_file(add.path, source.snapshot.where, source.snapshot.version)
            inside = folder / f"{FILE}={number}"
            inside.mkdir(parents=True)
            (inside / "data.parquet").symlink_to(target)
        kinds = {f.name: f.arrow.type for f in source.snapshot.schema.fields}
        schema = pa.schema([pa.field(inside, kinds[name]) for name, inside in source.stored.items()])
        self.session.register_listing_table(
            name, f"{folder}/", table_partition_cols=[(FILE, pa.int32())], schema=schema
        )
        return name

    def _select(self, source: TableSource, files: Sequence[AddFile], *, marked: bool) -> str:
        constants = source.constants(files)
        columns = []
        for f in source.schema:
            inside = quote_identifier(source.stored.get(f.name, f.name))
            columns.append(f"{'c' if f.name in constants else 'f'}.{inside} AS {quote_identifier(f.name)}")
        rows = f"{self._files(source, files)} AS f"
        if marked:
            listed = ", ".join((*map(quote_identifier, source.stored.values()), FILE, f"file_row_index() AS {_ROW}"))
            gone = self._deleted(source, files)
            same = f"f.{FILE} = d.{FILE} AND f.{_ROW} = d.{_ROW}"
            rows = f"(SELECT {listed} FROM {rows}) AS f LEFT ANTI JOIN {gone} AS d ON {same}"
        if constants:
            types = {f.name: f.type for f in source.schema}
            arrays = [pa.array(range(len(files)), pa.int32())]
            arrays += [pa.array(values, types[name]) for name, values in constants.items()]
            batch = pa.RecordBatch.from_arrays(arrays, names=[FILE, *constants])
            # A join stands in parentheses; a single table must not, in the dialect that has lambdas.
            left = f"({rows})" if marked else rows
            rows = f"{left} JOIN {self._rows([batch], batch.schema)} AS c ON f.{FILE} = c.{FILE}"
        return f"SELECT {', '.join(columns)} FROM {rows}"

    def _deleted(self, source: TableSource, files: Sequence[AddFile]) -> str:
        schema = pa.schema([(FILE, pa.int32()), (_ROW, pa.int64())])
        batches = []
        for number, add in enumerate(files):
            vector = live_vector(source.snapshot, add)
            if vector is not None:
                at = pa.array(deletion_vectors.positions(vector)).cast(pa.int64())
                batches.append(
                    pa.RecordBatch.from_arrays([pa.array([number] * len(at), pa.int32()), at], schema=schema)
                )
        return self._rows(batches, schema)
