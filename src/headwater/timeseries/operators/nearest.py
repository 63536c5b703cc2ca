"""For each probe its k nearest rows, or all rows within a distance, exactly: nearest.

Probes at hand are few, and go to every task with the kernel. A task keeps for each probe its best k rows, against which
most pairs are ruled out without being looked at (`vector_search`); what tasks kept is put together and cut to k again.
Without k, each pair within the distance is a row, and a table of rows can be compared by itself. For probes that are a
stream see `nearest_sharded`.

Rows at the same distance are decided by their other columns (`ranking`), and after those by the vector's bytes: the
answer is a function of the rows. A row of the answer has the columns of the stream, those of the probe, and the
distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.node import Gathered, Node, RowKernel, RowWise, StreamKernel
from headwater.timeseries.ranking import first_rows
from headwater.timeseries.vector_search import Probes, Vectors, vector_type, vectors_of

__all__ = ["BYTES", "PROBE", "Nearest", "NearestIn", "Search", "WithinDistance", "joined_schema"]

PROBE, BYTES = "__hw_probe", "__hw_bytes"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for."""

    column: str
    probe_column: str
    metric: str
    k: int | None
    within: float | None
    distance: str = "distance"
    suffix: str = "_right"

    def check(self, rows: pa.Schema, probes: pa.Schema) -> None:
        """Refuse columns that are no vectors, or of different sizes."""
        mine, theirs = vector_type(rows.field(self.column)), vector_type(probes.field(self.probe_column))
        if mine[1] is not None and theirs[1] is not None and mine[1] != theirs[1]:
            what = f"{self.column} of {mine[1]} components and {self.probe_column} of {theirs[1]}"
            raise InputError.bad_argument("column", what, "vectors of one size")

    @property
    def shown(self) -> str:
        """In words, for explain."""
        which = f"{self.k:,} nearest" if self.k is not None else "all"
        limit = f" within {self.within:g}" if self.within is not None else ""
        return f"{which}{limit} by {self.metric} of {self.column}"


def joined_schema(rows: pa.Schema, probes: pa.Schema, search: Search) -> pa.Schema:
    """The columns of a row, of its probe, and the distance.

    >>> search = Search("e", "e", "l2", 1, None)
    >>> joined_schema(pa.schema([("id", pa.int8())]), pa.schema([("id", pa.int8())]), search).names
    ['id', 'id_right', 'distance']
    """
    taken = {name.lower() for name in (*rows.names, search.distance)}
    if len(taken) <= len(rows):
        raise InputError.bad_argument("distance", search.distance, "a name that no column of the stream has")
    fields = list(rows)
    for f in probes:
        name = f.name + search.suffix if f.name.lower() in taken else f.name
        if name.lower() in taken:
            raise InputError.bad_argument("suffix", search.suffix, f"one under which `{f.name}` has a name of its own")
        taken.add(name.lower())
        fields.append(f.with_name(name))
    return pa.schema([*(pa.field(f.name, f.type) for f in fields), pa.field(search.distance, pa.float64())])


class NearestIn:
    """The best rows of each probe so far."""

    def __init__(self, search: Search, probes: pa.Table) -> None:
        self._search = search
        self._size = vector_type(probes.schema.field(search.probe_column))[1]
        found = vectors_of(probes.column(search.probe_column), search.probe_column, self._size, search.metric)
        self._numbers = found.rows
        self._probes = Probes(found.matrix, search.metric)
        if len(found.matrix):
            self._size = found.matrix.shape[1]
        self._limit = np.full(len(self._probes), np.inf if search.within is None else search.within)
        self._held: pa.Table | None = None

    def pairs(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows of a table that are near enough to a probe, with its number, their bytes and the distance."""
        search = self._search
        size = self._size or vector_type(rows.schema.field(search.column))[1]
        vectors = vectors_of(rows.column(search.column), search.column, size, search.metric)
        start, size = 0, 0
        while start < len(vectors.matrix):
            start += size
            # The first rows give limits that rule most of the others out: few of them are enough.
            unlimited = search.k is not None and not np.isfinite(self._limit).all()
            size = (
                min(self._probes.block_rows, max(2_048, 4 * (search.k or 0))) if unlimited else self._probes.block_rows
            )
            block = vectors.matrix[start : start + size]
            probe, row, distances = self._probes.pairs(block, self._limit, search.k)
            if len(probe):
                yield self._found(rows, Vectors(block, vectors.rows[start:]), probe, row, distances)

    def add(self, rows: pa.Table) -> None:
        """Look through more rows."""
        assert self._search.k is not None
        for found in self.pairs(rows):
            held = found if self._held is None else pa.concat_tables([self._held, found])
            self._held = first_rows(held, self._search.k, [(self._search.distance, False)], [PROBE])
            self._tighten()

    def held(self) -> pa.Table | None:
        """What was found, for each probe at most k rows."""
        return self._held

    def _tighten(self) -> None:
        """Whoever has k rows needs no row that is farther than the last of them."""
        assert self._held is not None
        numbers, distances = (np.asarray(self._held.column(n)) for n in (PROBE, self._search.distance))
        places = np.searchsorted(self._numbers, numbers)
        counts = np.bincount(places, minlength=len(self._limit))
        farthest = np.full(len(self._limit), -np.inf)
        np.maximum.at(farthest, places, distances)
        full = counts == self._search.k
        self._limit[full] = np.minimum(self._limit[full], farthest[full])

    def _found(
        self,
        rows: pa.Table,
        block: Vectors,
        probe: npt.NDArray[np.int64],
        row: npt.NDArray[np.int64],
        distances: Floats,
    ) -> pa.Table:
        taken = rows.take(pa.array(block.rows[row]))
        vectors = np.ascontiguousarray(block.matrix[row])
        width = vectors.shape[1] * vectors.itemsize
        kind = pa.binary(width) if width else pa.binary()
        data = pa.Array.from_buffers(kind, len(vectors), [None, pa.py_buffer(vectors)]).cast(pa.binary())
        found = taken.append_column(BYTES, data).append_column(PROBE, pa.array(self._numbers[probe]))
        return found.append_column(self._search.distance, pa.array(distances))


@dataclass(frozen=True)
class Nearest(Gathered):
    """The k nearest rows of each probe at hand.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"id": [1, 2, 3], "e": [[0.0, 1.0], [1.0, 0.0], [3.0, 4.0]]}))
    >>> node = Nearest(rows, pa.table({"q": ["x"], "v": [[1.0, 0.5]]}), Search("e", "v", "l2", 2, None))
    >>> [(r["q"], r["id"], r["distance"]) for r in run_here(node).to_pylist()]
    [('x', 2, 0.5), ('x', 1, 1.118033988749895)]
    """

    input: Node
    probes: pa.Table = field(compare=False)
    search: Search

    def __post_init__(self) -> None:
        self.search.check(self.input.schema, self.probes.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        return joined_schema(self.input.schema, self.probes.schema, self.search)

    @cached_property
    def partial_schema(self) -> pa.Schema:
        return _partial_schema(self.input.schema, self.search)

    def line(self) -> str:
        return f"{self.search.shown}, for {self.probes.num_rows:,} probes at hand"

    def kernels(self) -> tuple[StreamKernel, StreamKernel]:
        vectors = self.probes.select([self.search.probe_column])
        return _Partial(vectors, self.search, self.partial_schema), _Finish(self.probes, self.search, self.schema)


@dataclass(frozen=True)
class WithinDistance(RowWise):
    """All pairs of a row and a probe at hand within a distance.

    >>> from headwater.timeseries.operators.values import Values
    >>> rows = pa.table({"id": [1, 2], "e": [[0.0, 1.0], [1.0, 0.0]]})
    >>> node = WithinDistance(Values(rows), pa.table({"v": [[1.0, 0.5]]}), Search("e", "v", "l2", None, 0.5))
    >>> node.kernel()(rows).column("id").to_pylist()
    [2]
    """

    input: Node
    probes: pa.Table = field(compare=False)
    search: Search

    def __post_init__(self) -> None:
        self.search.check(self.input.schema, self.probes.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        return joined_schema(self.input.schema, self.probes.schema, self.search)

    def line(self) -> str:
        return f"{self.search.shown}, for {self.probes.num_rows:,} probes at hand"

    def kernel(self) -> RowKernel:
        return _Within(self.probes, self.search, self.schema)


@dataclass(frozen=True, slots=True)
class _Partial:
    probes: pa.Table
    search: Search
    schema: pa.Schema

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        found = NearestIn(self.search, self.probes)
        for table in tables:
            found.add(table)
        held = found.held()
        yield self.schema.empty_table() if held is None else held.cast(self.schema)


@dataclass(frozen=True, slots=True)
class _Finish:
    probes: pa.Table
    search: Search
    schema: pa.Schema

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        held: pa.Table | None = None
        assert self.search.k is not None
        for table in tables:
            both = table if held is None else pa.concat_tables([held, table])
            held = first_rows(both, self.search.k, [(self.search.distance, False)], [PROBE])
        if held is not None:
            yield with_probes([held], self.probes, self.search, self.schema)


@dataclass(frozen=True, slots=True)
class _Within:
    probes: pa.Table
    search: Search
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        found = list(NearestIn(self.search, self.probes).pairs(rows))
        return with_probes(found, self.probes, self.search, self.schema)


def with_probes(found: Sequence[pa.Table], probes: pa.Table, search: Search, schema: pa.Schema) -> pa.Table:
    """What was found, with the probes' columns instead of their numbers.

    >>> with_probes([], pa.table({}), Search("e", "v", "l2", 1, None), pa.schema([("distance", pa.float64())])).num_rows
    0
    """
    if not found:
        return schema.empty_table()
    pairs = pa.concat_tables(found)
    theirs = probes.take(pairs.column(PROBE).combine_chunks()).columns
    mine = pairs.drop_columns([PROBE, BYTES, search.distance]).columns
    return pa.Table.from_arrays([*mine, *theirs, pairs.column(search.distance)], schema=schema)


def _partial_schema(rows: pa.Schema, search: Search) -> pa.Schema:
    fields = [pa.field(f.name, f.type) for f in rows]
    more = [(BYTES, pa.binary()), (PROBE, pa.int64()), (search.distance, pa.float64())]
    return pa.schema([*fields, *(pa.field(n, t) for n, t in more)])
