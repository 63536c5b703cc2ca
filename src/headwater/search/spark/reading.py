"""Reading for Spark: the planner finds the rows, and tasks fetch them by their addresses.

Searching takes less than a millisecond, and a search of several splits needs their statistics together; so the planner
searches. What tasks are given are files, each with the positions of the rows that are wanted (or none: all rows), with
their scores if those are asked for. A task takes many files, up to a number of bytes, and a large file is shared by
several. A condition that the index has given candidates for is verified by the tasks.

Spark pickles the reader before it asks for the partitions, so what the planner finds out travels in the partitions.
`pushFilters` is not overridden, on purpose: in PySpark 4.x pushed filters leak into other uses of the same source.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headwater.base import settings
from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.schema import type_text
from headwater.lake.actions import AddFile
from headwater.lake.find import candidate_files, condition
from headwater.lake.published import check_built
from headwater.lake.scan import POSITION, map_files, read_file
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.tasks import shaped, without_files
from headwater.lake.spark.types import loose_field, spark_struct
from headwater.search.filtering import MOST_SHARE, Way, choose_way, spark_share
from headwater.search.kept_index import KeptIndex
from headwater.search.reader import Hits, Reader
from headwater.search.request import Request, compile_query
from headwater.search.searching import search
from headwater.search.spark.options import SourceOptions
from headwater.search.spark.place import place_of
from headwater.sql import expressions
from headwater.sql.expressions import Expression

__all__ = ["SCORE", "FilePiece", "SearchReader", "SourcePart", "read_struct"]

SCORE = "_score"
_TASK_BYTES = 32 << 20
_LEAST_BYTES = 4 << 20
_FILE_BYTES = 256 << 10
_HIT_BYTES = 16 << 10
_RANKED_ROWS = 1_000
"""So many rows are given by one task, in the order of their rank."""
_BATCH_ROWS = 16_384
_RANK = "__rank"


@dataclass(frozen=True, slots=True)
class FilePiece:
    """What a task reads of one file: rows at positions, or all that begin within some bytes of it."""

    add: str
    positions: Any = None
    scores: Any = None
    ranks: Any = None
    within: tuple[int, int] | None = None


class SourcePart(InputPartition):
    """The work of one task."""

    def __init__(self, pieces: Sequence[FilePiece]) -> None:
        self.pieces = tuple(pieces)

    def __repr__(self) -> str:
        return f"SourcePart({len(self.pieces)} files)"


def read_struct(now: Snapshot, columns: Sequence[str] | None) -> StructType:
    """The columns that a read gives, in Spark's types."""
    from pyspark.sql.types import DoubleType

    struct = StructType()
    for name in columns if columns is not None else now.schema.names:
        if name == SCORE and name not in now.schema:
            struct = struct.add(SCORE, DoubleType())
        else:
            struct = struct.add(spark_struct(now.schema, [now.schema.field(name, now.where).name])[0])
    return struct


class SearchReader(DataSourceReader):
    """The rows of a table, or those that a search or a condition finds."""

    def __init__(self, options: SourceOptions, now: Snapshot, schema: StructType) -> None:
        check_built(now.where, now)
        self.options, self.schema = options, schema
        self.base = without_files(now)
        self._now: Snapshot | None = now
        self.fields = [None if self._is_score(f.name) else now.schema.field(f.name, now.where) for f in schema]
        self._check_types(now)
        condition(now, options.text("filter"))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_now": None}

    def __repr__(self) -> str:  # storage options hold secrets
        return f"SearchReader({self.base.where!r}, version {self.base.version})"

    def _is_score(self, name: str) -> bool:
        return name == SCORE and name not in self.base.schema

    def _check_types(self, now: Snapshot) -> None:
        have = spark_struct(now.schema)
        for f, column in zip(self.schema.fields, self.fields, strict=True):
            if column is None:
                if f.dataType.simpleString() != "double":
                    raise SchemaError.type_clash(SCORE, "double", f.dataType.simpleString(), now.where)
            elif have[column.name].dataType.simpleString() != f.dataType.simpleString():
                raise SchemaError.type_clash(f.name, type_text(column.type), f.dataType.simpleString(), now.where)

    # -- in the planner --------------------------------------------------------------------------------------------

    def partitions(self) -> list[InputPartition]:
        """Find the rows."""
        now = self._now
        assert now is not None, "partitions are made where the reader is"
        with settings.override(**self.options.settings):
            pieces = self._found(now)
        if any(piece.ranks is not None for piece, _ in pieces):
            return [SourcePart([piece for piece, _ in pieces])]
        return list(_packed(pieces))

    def _found(self, now: Snapshot) -> list[tuple[FilePiece, int]]:
        query, where, k = self.options.text("query"), self.options.text("filter"), self.options.number("k")
        if query is None:
            if k is not None:
                raise InputError.bad_argument("k", k, "a query beside it, since rows are ranked by one")
            candidates = None if where is None else self._by_condition(now, where)
            return self._scanned(now, where) if candidates is None else _by_file(*candidates)
        index = self._index(self.options.text("index"), now)
        request = Request(
            query=query, k=k, where=where, fields=self.options.list("fields"), default=self.options.default,
            lenient=self.options.flag("lenient"),
        )  # fmt: skip
        if k is not None:
            found = search(index.reader(), request)
            return _by_file(found.reader, found.hits, scored=self._scores, ranked=len(found) <= _RANKED_ROWS)
        reader = index.reader()
        compiled, _ = compile_query(reader, request)
        way = self._way(reader, where)
        if way is not None and way.query is not None:
            compiled = _both(compiled, way.query)
        hits = reader.top(compiled, reader.count(compiled)) if self._scores else reader.every(compiled)
        return _by_file(reader, hits, scored=self._scores)

    @property
    def _scores(self) -> bool:
        return any(f is None for f in self.fields)

    def _index(self, name: str | None, now: Snapshot) -> KeptIndex:
        place = place_of(self.options)
        if place is None:
            raise NotFoundError.derived(name or f"index on {now.where}", KeptIndex.kind, [], now.where)
        return place.index(name).at(now.version)

    def _way(self, reader: Reader, where: str | None, most_share: float = MOST_SHARE) -> Way | None:
        wanted = condition(reader.base, where)
        return None if wanted is None else choose_way(reader, wanted.node, most_share)

    def _by_condition(self, now: Snapshot, where: str) -> tuple[Reader, Hits] | None:
        """The candidates of a condition by the index that names fewest; None where a scan is right."""
        named = self.options.text("index")
        if named is not None:
            indexes = [self._index(named, now)]
        elif (place := place_of(self.options)) is None:
            indexes = []
        else:
            known = (place.index(name) for name in place.indexes())
            indexes = [one.at(now.version) for one in known if one.record.published]
        found: tuple[Way, Reader] | None = None
        for index in indexes:
            try:
                reader = index.reader()
            except SchemaError:  # a column that it has is gone, or another one: it says nothing about this version
                if named is not None:
                    raise
                continue
            way = self._way(reader, where, spark_share(reader))
            if way is not None and way.query is not None and (found is None or way.rows < found[0].rows):
                found = (way, reader)
        return None if found is None else (found[1], found[1].every(found[0].query))

    def _scanned(self, now: Snapshot, where: str | None) -> list[tuple[FilePiece, int]]:
        wanted = condition(now, where)
        files = candidate_files(now, wanted.conjuncts() if wanted is not None else ())
        pieces = []
        for f in files:
            add = json.dumps(f.to_action()["add"])
            if f.size <= 3 * _TASK_BYTES // 2:
                pieces.append((FilePiece(add), f.size))
                continue
            count = -(-f.size // _TASK_BYTES)
            for n in range(count):
                end = f.size + 1 if n == count - 1 else (n + 1) * _TASK_BYTES
                pieces.append((FilePiece(add, within=(n * _TASK_BYTES, end)), _TASK_BYTES))
        return pieces

    # -- in tasks --------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        if not isinstance(partition, SourcePart):  # Spark's own, where there is nothing to read
            return
        pa.set_cpu_count(1)
        pieces = partition.pieces
        with settings.override(**self.options.settings):
            if len(pieces) > 1 and all(piece.positions is not None for piece in pieces):
                batches = [b for found in map_files(pieces, lambda piece: list(self._rows(piece))) for b in found]
                if batches and pieces[0].ranks is not None:
                    batches = _in_order(batches)
                yield from (b.drop_columns([_RANK]) if _RANK in b.schema.names else b for b in batches)
                return
            for piece in pieces:
                found = self._rows(piece)
                if piece.ranks is None:
                    yield from found
                elif batches := list(found):
                    yield from (b.drop_columns([_RANK]) for b in _in_order(batches))

    def _rows(self, piece: FilePiece) -> Iterator[pa.RecordBatch]:
        base = self.base
        wanted = condition(base, self.options.text("filter"))
        asked = [f.name for f in self.fields if f is not None]
        used = {name for _, name in wanted.columns} if wanted is not None else set()
        names = [n for n in base.schema.names if n in asked or n in used]
        exact = to_arrow_schema(self.schema, timezone="UTC")
        numbered = piece.scores is not None or piece.ranks is not None or not names
        conjuncts = wanted.conjuncts() if wanted is not None and piece.positions is None else ()
        add = AddFile.from_json(json.loads(piece.add))
        for batch in read_file(
            base, add, names, positions=numbered, only=piece.positions, conjuncts=conjuncts, within=piece.within
        ):
            kept = batch if wanted is None else _meeting(batch, wanted)
            for begin in range(0, kept.num_rows, _BATCH_ROWS):
                yield self._finished(kept.slice(begin, _BATCH_ROWS), piece, exact)

    def _finished(self, batch: pa.RecordBatch, piece: FilePiece, exact: pa.Schema) -> pa.RecordBatch:
        """A batch with exactly the columns and types that Spark expects,
        and the rank beside them where there is one.
        """
        at = None
        if piece.scores is not None or piece.ranks is not None:
            at = np.searchsorted(piece.positions, batch.column(POSITION).to_numpy())
        arrays = []
        for f, target in zip(self.fields, exact, strict=True):
            if f is not None:
                (array,) = shaped(batch, [loose_field(f)]).columns
            elif piece.scores is None or at is None:
                array = pa.nulls(batch.num_rows, pa.float64())
            else:
                array = pa.array(piece.scores[at], pa.float64())
            arrays.append(array if array.type == target.type else array.cast(target.type))
        found = pa.RecordBatch.from_arrays(arrays, schema=exact)
        if piece.ranks is None or at is None:
            return found
        return found.append_column(_RANK, pa.array(piece.ranks[at], pa.int64()))


def _meeting(batch: pa.RecordBatch, wanted: Expression) -> pa.RecordBatch:
    """The rows that meet a condition."""
    met = pc.fill_null(expressions.evaluate(wanted, pa.Table.from_batches([batch])), False)
    return batch.filter(met.combine_chunks() if isinstance(met, pa.ChunkedArray) else met)


def _in_order(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The rows of some batches by their rank."""
    table = pa.Table.from_batches(batches)
    found: list[pa.RecordBatch] = table.sort_by(_RANK).combine_chunks().to_batches()
    return found


def _both(first: Any, second: Any) -> Any:
    import tantivy

    occur, make = tantivy.Occur, tantivy.Query
    return make.boolean_query([(occur.Must, first), (occur.Must, make.const_score_query(second, 0.0))])


def _by_file(reader: Reader, hits: Hits, *, scored: bool = False, ranked: bool = False) -> list[tuple[FilePiece, int]]:
    """The rows of hits, file by file, each with about the bytes that it takes to read them."""
    order = np.lexsort((hits.positions, hits.files))
    files, positions = hits.files[order], hits.positions[order]
    scores = np.asarray(hits.scores, np.float64)[order] if scored and len(hits.scores) else None
    bounds = [0, *(np.flatnonzero(np.diff(files)) + 1).tolist(), len(files)]
    found = []
    for begin, end in itertools.pairwise(bounds):
        if begin == end:
            continue
        add = reader.base.files[reader.paths[int(files[begin])]]
        piece = FilePiece(
            json.dumps(add.to_action()["add"]),
            positions[begin:end],
            None if scores is None else scores[begin:end],
            order[begin:end] if ranked else None,
        )
        found.append((piece, min(add.size, _FILE_BYTES + (end - begin) * _HIT_BYTES)))
    return found


def _packed(pieces: Sequence[tuple[FilePiece, int]]) -> Iterator[SourcePart]:
    """Tasks of several pieces: enough of them for the cores of a machine like this one, and none too small."""
    total = sum(size for _, size in pieces)
    target = min(_TASK_BYTES, max(_LEAST_BYTES, total // (os.cpu_count() or 1)))
    held: list[FilePiece] = []
    held_bytes = 0
    for piece, size in pieces:
        if held and held_bytes + size > target:
            yield SourcePart(held)
            held, held_bytes = [], 0
        held.append(piece)
        held_bytes += size
    if held:
        yield SourcePart(held)
