"""A source as a relation of DuckDB: Parquet files straight from the disk, or an Arrow stream.

Files are given to ``read_parquet`` with the table's schema, so that DuckDB opens none of them to learn it, and a column
which an older file holds in a narrower type comes out as the table says today. Files that lack a column are read apart,
with nulls in its place. What is not in the files is computed from ``file_index`` and ``file_row_number``: partition
values are looked up by file, and deleted rows are tested in strings of bits that hold the deletion vectors of some
files one after the other (a join with the deleted positions costs more). DuckDB copies such a string for every 2,048
rows it tests, so the strings are kept short, but not so short that a query falls into hundreds of scans.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from headwater.base.schema import duckdb_type
from headwater.lake import deletion_vectors
from headwater.lake.actions import AddFile
from headwater.lake.scan import live_vector
from headwater.query.sources import NarrowedSource, Source, TableSource
from headwater.sql.quoting import literal_sql, quote_identifier

__all__ = ["Relations"]

# get_bit() takes a 32-bit index.
_MOST_BITS = 2**31 - 1
_FEW_BITS = 2**20
_MOST_GROUPS = 64


@dataclass
class Relations:
    """The relations of one query: their SQL, the values it refers to, and the streams to register."""

    values: dict[str, bytes] = field(default_factory=dict)
    streams: dict[str, Source] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def sql(self, source: Source) -> str:
        """What stands after FROM."""
        if isinstance(source, TableSource) and source.paths is not None:
            return f"({self._files(source)})"
        if isinstance(source, NarrowedSource):
            if not source.found:
                return self.sql(source.rest)
            if not source.rest.files:
                return self.sql(source.named)
            return f"(FROM {self.sql(source.named)} UNION ALL FROM {self.sql(source.rest)})"
        name = f"headwater_rows_{next(self._numbers)}"
        self.streams[name] = source
        return quote_identifier(name)

    def _files(self, source: TableSource) -> str:
        parts = []
        for lacking, files in source.by_lacking().items():
            whole = [a for a in files if a.deletion_vector is None]
            marked = [a for a in files if a.deletion_vector is not None]
            if whole:
                parts.append(_select(source, whole, lacking))
            for group, bits, starts in _vectors(source, marked):
                name = f"bits{next(self._numbers)}"
                self.values[name] = bits
                row = f"{_by_file([str(s) for s in starts])} + file_row_number"
                alive = f"get_bit(CAST(CAST(${name} AS BLOB) AS BIT), CAST({row} AS INTEGER)) = 0"
                parts.append(f"{_select(source, group, lacking)} WHERE {alive}")
        return " UNION ALL ".join(parts) if parts else _empty(source)


def _empty(source: TableSource) -> str:
    columns = (f"CAST(NULL AS {duckdb_type(f.type)}) AS {quote_identifier(f.name)}" for f in source.schema)
    return f"SELECT {', '.join(columns)} WHERE FALSE"


def _select(source: TableSource, files: Sequence[AddFile], lacking: Collection[str]) -> str:
    constants = source.constants(files)
    columns = []
    for f in source.schema:
        name = quote_identifier(f.name)
        if f.name in constants:
            columns.append(f"{_by_file([literal_sql(v, f.type) for v in constants[f.name]])} AS {name}")
        elif f.name in lacking:
            columns.append(f"CAST(NULL AS {duckdb_type(f.type)}) AS {name}")
        else:
            inside = quote_identifier(source.stored[f.name])
            columns.append(inside if inside == name else f"{inside} AS {name}")
    return f"SELECT {', '.join(columns)} FROM {_read(source, files, lacking)}"


def _read(source: TableSource, files: Sequence[AddFile], lacking: Collection[str]) -> str:
    assert source.paths is not None
    place = dict(zip((a.path for a in source.files), source.paths, strict=True))
    paths = ", ".join(literal_sql(place[a.path]) for a in files)
    stored = {n: inside for n, inside in source.stored.items() if n not in lacking} or source.some_column(files[0])
    kinds = {f.name: f.arrow.type for f in source.snapshot.schema.fields}
    schema = ", ".join(f"{literal_sql(inside)}: {literal_sql(duckdb_type(kinds[n]))}" for n, inside in stored.items())
    counts = [a.num_records for a in files]
    known = sum(c for c in counts if c is not None)
    size = f", explicit_cardinality = {known}" if known and None not in counts else ""
    return f"read_parquet([{paths}], hive_partitioning = false, bound_schema = {{{schema}}}{size})"


def _by_file(values: Sequence[str]) -> str:
    """A constant of each file."""
    if len(set(values)) == 1:
        return values[0]
    return f"([{', '.join(values)}])[CAST(file_index AS BIGINT) + 1]"


def _vectors(source: TableSource, files: Sequence[AddFile]) -> list[tuple[list[AddFile], bytes, list[int]]]:
    """Files in groups, each with the bits of its deleted rows and the place where each file's bits begin."""
    groups: list[tuple[list[AddFile], list[int], int]] = []
    counts = [_rows(source, add) for add in files]
    most = min(_MOST_BITS, max(_FEW_BITS, sum(counts) // _MOST_GROUPS))
    for add, rows in zip(files, counts, strict=True):
        if not groups or groups[-1][2] + rows > most:
            groups.append(([], [], 0))
        group, starts, length = groups.pop()
        groups.append(([*group, add], [*starts, length], length + rows))
    return [(group, _bits(source, group, starts, length), starts) for group, starts, length in groups]


def _rows(source: TableSource, add: AddFile) -> int:
    if add.num_records is not None:
        return add.num_records
    assert source.paths is not None
    path = source.paths[[a.path for a in source.files].index(add.path)]
    return int(pq.read_metadata(path).num_rows)


def _bits(source: TableSource, files: Sequence[AddFile], starts: Sequence[int], length: int) -> bytes:
    packed: np.ndarray[Any, np.dtype[np.uint8]] = np.zeros((length + 7) // 8, np.uint8)
    for add, start in zip(files, starts, strict=True):
        vector = live_vector(source.snapshot, add)
        if vector is not None:
            at = deletion_vectors.positions(vector) + start
            np.bitwise_or.at(packed, at >> 3, (128 >> (at & 7)).astype(np.uint8))
    return packed.tobytes()
