"""Nearest neighbours for probes that are a stream: every shard of the rows meets every probe.

Rows are put into shards by a hash of their vector, probes are copied to all shards; in a shard they are at hand, and
`nearest` does the rest. The best k of each shard meet by the probe's key, which has to tell the probes apart, and are
cut to k by the same rule. All of it is made of nodes that a plan has anyway: `Spread`, `Shard`, `NearestInShard`, and
`TopKOfEach` on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.spark.buckets import bucket_of
from headwater.timeseries.node import Keyed, KeyedKernel, Node, RowKernel, RowWise
from headwater.timeseries.operators.nearest import BYTES, PROBE, NearestIn, Search, joined_schema
from headwater.timeseries.rows import Rows, key_starts, sort_table

__all__ = ["NearestInShard", "Shard", "Spread"]

SHARD = "__hw_shard"
_SIZE = "__hw_size"


@dataclass(frozen=True)
class Spread(RowWise):
    """Each row once for every shard.

    >>> from headwater.timeseries.operators.values import Values
    >>> rows = pa.table({"q": ["x"]})
    >>> Spread(Values(rows), 2).kernel()(rows).to_pylist()
    [{'q': 'x', '__hw_shard': 0}, {'q': 'x', '__hw_shard': 1}]
    """

    input: Node
    shards: int

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema.append(pa.field(SHARD, pa.int32()))

    def line(self) -> str:
        return f"copy to {self.shards:,} shards"

    def kernel(self) -> RowKernel:
        return _Spread(self.shards)


@dataclass(frozen=True)
class Shard(RowWise):
    """The rows with the number of their shard, which their vector decides."""

    input: Node
    column: str
    shards: int

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema.append(pa.field(SHARD, pa.int32()))

    def line(self) -> str:
        return f"{self.shards:,} shards by {self.column}"

    def kernel(self) -> RowKernel:
        return _Shard(self.column, self.shards)


@dataclass(frozen=True)
class NearestInShard(Keyed):
    """The nearest rows of each probe among those of the same shard."""

    rows: Node
    probes: Node
    search: Search
    key: tuple[str, ...]
    """The columns that tell probes apart."""

    def __post_init__(self) -> None:
        self.search.check(self.rows.schema, self.probes.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        mine, theirs = (pa.schema([f for f in n.schema if f.name != SHARD]) for n in self.inputs)
        return joined_schema(mine, theirs, self.search).append(pa.field(BYTES, pa.binary()))

    def line(self) -> str:
        return f"{self.search.shown}, for each probe in each shard"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (SHARD,), (SHARD,)

    def output_keys(self) -> tuple[str, ...] | None:
        return None

    def kernel(self) -> KeyedKernel:
        return _NearestInShard(self.search, self.key, self.schema)


@dataclass(frozen=True, slots=True)
class _Spread:
    shards: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        numbers = [pa.array(np.full(rows.num_rows, shard, np.int32)) for shard in range(self.shards)]
        return pa.concat_tables([rows.append_column(pa.field(SHARD, pa.int32()), n) for n in numbers])


@dataclass(frozen=True, slots=True)
class _Shard:
    column: str
    shards: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        numbers = np.concatenate([np.empty(0, np.int32), *map(self._of, rows.column(self.column).chunks)])
        return rows.append_column(pa.field(SHARD, pa.int32()), pa.array(numbers))

    def _of(self, vectors: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        # Three components are enough to spread vectors, and how many there are: the hash need not tell them apart.
        lengths = np.asarray(vectors.value_lengths().fill_null(0))
        flat = np.asarray(vectors.flatten().cast(pa.float64()).fill_null(0.0))
        starts = np.cumsum(np.where(np.asarray(vectors.is_valid()), lengths, 0)) - lengths
        parts: dict[str, pa.Array] = {_SIZE: pa.array(lengths)}
        for i, share in enumerate((0.0, 0.5, 1.0)):
            at = starts + (share * np.maximum(lengths - 1, 0)).astype(np.int64)
            values = flat[np.minimum(at, len(flat) - 1)] if len(flat) else np.zeros(len(lengths))
            parts[f"v{i}"] = pa.array(np.where(lengths > 0, values, 0.0))
        return bucket_of(pa.table(parts), list(parts), self.shards)


@dataclass(frozen=True, slots=True)
class _NearestInShard:
    search: Search
    key: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, rows: Rows, probes: Rows) -> Iterator[pa.Table]:
        # A task may have several shards; each of its probes is there once for each of them.
        shards: dict[int, NearestIn] = {}
        of_shard: dict[int, pa.Table] = {}
        at_hand = sort_table(probes.whole(), [SHARD, *self.key])
        bounds = [*key_starts(at_hand, [SHARD]).tolist(), at_hand.num_rows]
        if len(key_starts(at_hand, [SHARD, *self.key])) != at_hand.num_rows:
            raise InputError.bad_argument("key", list(self.key), "columns that tell the rows of the other stream apart")
        for start, end in pairwise(bounds):
            number = at_hand.column(SHARD)[start].as_py()
            of_shard[number] = at_hand.slice(start, end - start).drop_columns([SHARD])
            shards[number] = NearestIn(self.search, of_shard[number])
        for table in rows:
            numbers = np.asarray(table.column(SHARD))
            for number in np.unique(numbers).tolist():
                if number not in shards:
                    continue
                here = table.filter(pa.array(numbers == number)).drop_columns([SHARD])
                if self.search.k is not None:
                    shards[number].add(here)
                else:
                    yield from (self._joined(found, of_shard[number]) for found in shards[number].pairs(here))
        for number, found in shards.items():
            held = found.held()
            if held is not None:
                yield self._joined(held, of_shard[number])

    def _joined(self, pairs: pa.Table, probes: pa.Table) -> pa.Table:
        theirs = probes.take(pairs.column(PROBE).combine_chunks()).columns
        mine = pairs.drop_columns([PROBE, BYTES, self.search.distance]).columns
        last = [pairs.column(self.search.distance), pairs.column(BYTES)]
        return pa.Table.from_arrays([*mine, *theirs, *last], schema=self.schema)
