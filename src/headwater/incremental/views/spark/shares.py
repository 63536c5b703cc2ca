"""Shares: what one task reads. Pieces of the data files of a source, files of its changes, or rows that an earlier
part left.

A large file is shared by ranges of bytes: a task takes the row groups that begin in its range, so the driver opens no
file.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.base.storage import Storage
from headwater.derived.sources import Input, renamed
from headwater.lake.actions import AddFile
from headwater.lake.changes import FileChange, read_change
from headwater.lake.scan import read_file
from headwater.lake.snapshot import Snapshot

__all__ = [
    "Changes",
    "Files",
    "Left",
    "Own",
    "Share",
    "gathered",
    "leave",
    "of_changes",
    "of_files",
    "of_left",
    "of_view",
]

_SHARE_BYTES = 32 << 20
_LEAST_BYTES = 1 << 20
_CHUNK_ROWS = 131_072
_SHARDS = b"shards"


@dataclass(frozen=True, slots=True)
class Files:
    """Pieces of data files of a relation, whose rows have the weight 1."""

    relation: str
    pieces: tuple[tuple[AddFile, tuple[int, int] | None], ...]

    def read(self, base: Snapshot, one: Input) -> Iterator[pa.RecordBatch]:
        """The rows, under the names that the view has for the columns."""
        names = [base.schema.field(c).name for c in one.columns]
        for add, within in self.pieces:
            for batch in read_file(base, add, names, within=within):
                yield renamed(batch, one.columns)


@dataclass(frozen=True, slots=True)
class Changes:
    """Files that hold changes of a relation, whose rows have weights."""

    relation: str
    files: tuple[FileChange, ...]

    def read(self, base: Snapshot, one: Input) -> Iterator[pa.RecordBatch]:
        """The rows with their weights."""
        names = [base.schema.field(c).name for c in one.columns]
        for change in self.files:
            for batch in read_change(base, change, names):
                yield renamed(batch, one.columns)


@dataclass(frozen=True, slots=True)
class Left:
    """Files in which a part has left the rows of one of its goals.

    Where they are for one leaf, they lie by their shards, one record batch for each, and need not be looked at again.
    """

    goal: int
    paths: tuple[str, ...]

    def tables(self, root: Storage) -> Iterator[tuple[int | None, pa.Table]]:
        """The rows, and the shard that they are for, if that is settled."""
        for path in self.paths:
            with root.open_input(path) as source, pa.ipc.open_stream(source) as reader:
                known = (reader.schema.metadata or {}).get(_SHARDS)
                shards: Iterable[int | None] = itertools.repeat(None) if known is None else json.loads(known)
                for shard, batch in zip(shards, reader, strict=False):
                    yield shard, pa.Table.from_batches([batch.replace_schema_metadata()])


def leave(root: Storage, path: str, schema: pa.Schema, pieces: Sequence[tuple[int | None, pa.Table]]) -> None:
    """Write rows for `Left`: pieces with their shards, or without where these are not settled."""
    shards = [shard for shard, _ in pieces]
    described = schema if None in shards else schema.with_metadata({_SHARDS: json.dumps(shards)})
    with root.open_output(path) as output, pa.ipc.new_stream(output, described) as writer:
        for _, table in pieces:
            writer.write_table(table.combine_chunks().replace_schema_metadata(described.metadata))


@dataclass(frozen=True, slots=True)
class Own:
    """Data files of the view itself, with the numbers that addresses have for them."""

    files: tuple[tuple[int, AddFile], ...]

    def read(self, base: Snapshot, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The number of a file, and live rows of it, with their positions as the last column."""
        for number, add in self.files:
            for batch in read_file(base, add, names, positions=True):
                yield number, batch


Share = Files | Changes | Left | Own


def of_files(relation: str, files: Sequence[AddFile], tasks: int) -> list[Share]:
    """All rows of a relation, in shares of about equal size, for so many tasks at once."""
    total = sum(f.size for f in files)
    size = max(_LEAST_BYTES, min(_SHARE_BYTES, -(-total // max(1, 2 * tasks))))
    shares: list[list[tuple[AddFile, tuple[int, int] | None]]] = []
    filled = size
    for add in files:
        for piece, length in _pieces(add, size):
            if filled + length > size:
                shares.append([])
                filled = 0
            shares[-1].append(piece)
            filled += length
    return [Files(relation, tuple(share)) for share in shares]


def _pieces(add: AddFile, size: int) -> Iterator[tuple[tuple[AddFile, tuple[int, int] | None], int]]:
    if add.size <= size * 3 // 2:
        yield (add, None), add.size
        return
    count = -(-add.size // size)
    for i in range(count):
        within = (add.size * i // count, add.size * (i + 1) // count)
        yield (add, within), within[1] - within[0]


def of_changes(relation: str, files: Sequence[FileChange], tasks: int) -> list[Share]:
    """The changed rows of a relation, by files."""
    count = max(1, min(len(files), 2 * tasks))
    shares: list[list[FileChange]] = [[] for _ in range(count)]
    sizes = [0] * count
    for change in sorted(files, key=_bytes, reverse=True):
        at = sizes.index(min(sizes))
        shares[at].append(change)
        sizes[at] += _bytes(change) + 1
    return [Changes(relation, tuple(share)) for share in shares if share]


def _bytes(change: FileChange) -> int:
    return max(f.size for f in (change.before, change.after) if f is not None)


def of_left(goal: int, paths: Mapping[str, int], tasks: int) -> list[Share]:
    """The rows that a part left, by files with their sizes."""
    count = max(1, min(len(paths), 2 * tasks))
    shares: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for path, size in sorted(paths.items(), key=lambda item: -item[1]):
        at = sizes.index(min(sizes))
        shares[at].append(path)
        sizes[at] += size + 1
    return [Left(goal, tuple(share)) for share in shares if share]


def of_view(numbers: Mapping[int, str], files: Mapping[str, AddFile], tasks: int) -> list[Share]:
    """The rows that a view has, by its files."""
    count = max(1, min(len(files), 2 * tasks))
    listed = sorted(((n, files[path]) for n, path in numbers.items()), key=lambda one: one[1].size)
    return [Own(tuple(listed[i::count])) for i in range(count)]


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch | pa.Table]:
    """Batches of which small ones are put together."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS:
            yield held[0] if len(held) == 1 else pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield held[0] if len(held) == 1 else pa.Table.from_batches(held)
