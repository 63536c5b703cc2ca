"""A view recomputed by Spark: tasks hash the rows of both sides, and the driver compares sums.

Spark answers the text of the view over its sources at the frontier, and reads the view's own table. On each side every
task adds the hashes of its rows up by partition (`derived.digest`) and sends the sums, a few kilobytes for each
thousand partitions, whatever the number of rows. Where sums differ, the rows of those partitions are fetched and paired
on the driver, as many partitions as fit its bound.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.base import events, rowkey
from headwater.derived.comparison import compare
from headwater.derived.digest import Digest, RowHash, partition_bits, partition_of
from headwater.derived.reports import Verification
from headwater.incremental.views.record import ViewRecord
from headwater.kernels.arrays import Flags
from headwater.query.spark.engine import SparkEngine
from headwater.spark.failures import carried, told
from headwater.spark.shipping import with_package
from headwater.sql.fragment import Fragment

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake
    from headwater.incremental.views import View
    from headwater.spark.types import DataFrame

__all__ = ["verify_view"]

_FETCHED_ROWS = 1_000_000
"""How many rows of partitions that differ the driver takes of both sides, at most."""
_SUMS = "rows long, nbytes long, sums binary"


def verify_view(lake: DerivingLake, view: View, *, fetched_rows: int = _FETCHED_ROWS) -> tuple[Verification, str]:
    """Hold a view against what Spark's SQL gives at its frontier; and what a reader of the result has to know."""
    now = view.table.pinned_to(view.table.snapshot)
    at = ViewRecord.of(now.snapshot).frontier
    schema = pa.schema([pa.field(f.name, rowkey.plain_type(f.type)) for f in view.schema])
    rows = now.count()
    with events.task(f"verify {view.name} on spark", total=None, unit="rows"):
        asked = SparkEngine().rows(lake, Fragment(view.definition), view.relations_at(at))
        try:
            expected = asked.data.select(*[f"`{name}`" for name in schema.names])
            with told():
                return _compared(view, (expected, now.spark(lake.spark)), schema, rows, at, fetched_rows)
        except Exception as error:  # noqa: BLE001 (told in plain words)
            raise asked.failure(error) from None
        finally:
            asked.close()


def _compared(
    view: View, sides: tuple[DataFrame, DataFrame], schema: pa.Schema, rows: int, at: Any, fetched_rows: int
) -> tuple[Verification, str]:
    key, bits = os.urandom(32), partition_bits(rows)
    hashed = RowHash(schema, key)
    expected, actual = (_digest(side, hashed, key, bits) for side in sides)
    differs = expected.differs(actual)
    count, chosen, note = int(differs.sum()), differs, ""
    total = (expected.counts + actual.counts) * differs
    if int(total.sum()) > fetched_rows:
        chosen = differs & (np.cumsum(total) <= fetched_rows)
        if not chosen.any():
            chosen[int(np.flatnonzero(differs)[0])] = True
        note = (
            f"rows of {int(chosen.sum()):,} of {count:,} partitions that differ were compared; the counts are of these"
        )
    empty = schema.empty_table()
    some = [empty, empty] if not count else [_fetched(side, schema, key, bits, chosen) for side in sides]
    found = compare(at, expected=some[0], actual=some[1], name=view.name)
    if int(chosen.sum()) < count and found.equal:  # only floats differ there: then the others count as well
        note = f"{note}, and they are equal up to the last digits of floats"
    return (
        replace(
            found,
            rows=actual.rows,
            expected_rows=expected.rows,
            partitions=len(differs),
            exact_partitions=int(chosen.sum()),
            behind=view.upstream_behind(),
        ),
        note,
    )


def _digest(frame: DataFrame, hashed: RowHash, key: bytes, bits: int) -> Digest:
    """The sums of a side, over all tasks."""
    with_package(frame.sparkSession)
    found = frame.mapInArrow(_Digesting(hashed.schema, key, bits), _SUMS).toArrow()
    total = Digest(hashed, bits)
    for rows, nbytes, sums in zip(*(found.column(n).to_pylist() for n in ("rows", "nbytes", "sums")), strict=True):
        words = np.frombuffer(sums, dtype=np.uint64).reshape(-1, 1 << bits)
        total.rows, total.nbytes = total.rows + rows, total.nbytes + nbytes
        total.counts += words[0].astype(np.int64)
        for grid in range(len(total.sums)):
            total.sums[grid] += words[1 + 2 * grid : 3 + 2 * grid].T
    return total


def _fetched(frame: DataFrame, schema: pa.Schema, key: bytes, bits: int, chosen: Flags) -> pa.Table:
    """The rows of some partitions of a side."""
    picked = frame.mapInArrow(_Picking(schema, key, bits, np.flatnonzero(chosen).tolist()), frame.schema).toArrow()
    return pa.Table.from_batches(list(_conformed(picked.to_batches(), schema)), schema)


@dataclass(frozen=True, slots=True)
class _Digesting:
    """What a task does with its rows: their sums."""

    schema: pa.Schema
    key: bytes
    bits: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            digest = Digest(RowHash(self.schema, self.key), self.bits)
            for batch in _conformed(batches, self.schema):
                digest.add(batch)
            if digest.rows:
                words = [digest.counts.astype(np.uint64)]
                words += [lanes[:, side] for lanes in digest.sums for side in (0, 1)]
                sums = np.stack(words).tobytes()
                arrays = [pa.array([digest.rows]), pa.array([digest.nbytes]), pa.array([sums], pa.binary())]
                yield pa.RecordBatch.from_arrays(arrays, names=["rows", "nbytes", "sums"])


@dataclass(frozen=True, slots=True)
class _Picking:
    """What a task does with its rows: those of some partitions, as they came."""

    schema: pa.Schema
    key: bytes
    bits: int
    partitions: list[int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            hashed = RowHash(self.schema, self.key)
            for batch in batches:
                for plain in _conformed([batch], self.schema):
                    places = partition_of(hashed.plain_lanes(plain), self.bits)
                    yield batch.filter(pa.array(np.isin(places, self.partitions)))


def _conformed(batches: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches with exactly the types that are hashed."""
    for batch in batches:
        columns = [batch.column(f.name) for f in schema]
        columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
