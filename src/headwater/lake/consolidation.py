"""Consolidation of a stream: each row once, with its weights added up, in bounded memory.

A change of a table is read as it comes from files: a rewritten file gives its rows with both signs. Most changes are
small, and are added up in memory (`base/consolidation.py`), which takes well under a millisecond; starting DuckDB takes
25. A stream that turns out to be large goes to DuckDB, which aggregates in parallel and spills to disk, with what has
been read of it so far.

Both ways mean the same by equal rows: every value is the same bit for bit. In SQL 0.0 and -0.0 are equal, so columns of
floats are grouped by their sign too, and nested columns by their text, in which the sign shows.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headwater.base import settings
from headwater.base.consolidation import consolidate_table
from headwater.base.errors import ConstraintError, HeadwaterError, StorageError
from headwater.base.scratch import scratch_parent

__all__ = ["consolidate_stream"]

_BATCH_ROWS = 131_072
# Up to here, adding up in memory takes less time than DuckDB does; the bytes are what a reader may hold meanwhile.
_HELD_ROWS = 1_000_000
_HELD_BYTES = 128 << 20


def consolidate_stream(
    reader: pa.RecordBatchReader, *, held_rows: int = _HELD_ROWS, held_bytes: int | None = None
) -> pa.RecordBatchReader:
    """The same Z-set with each row once and none of weight zero, in any order; the last column is the weight (int64).

    At most ``held_rows`` rows and about ``held_bytes`` bytes (by default 128 MiB, or a quarter of the setting
    ``memory_limit_bytes``) are added up in memory. Columns are of the types that a Delta table has.
    """
    schema = reader.schema
    if held_bytes is None:
        held_bytes = min(_HELD_BYTES, (settings.current().memory_limit_bytes or 4 * _HELD_BYTES) // 4)

    def batches() -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in reader:
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > held_rows or size > held_bytes:
                yield from _spilled(schema, itertools.chain(held, reader))
                return
        if rows:
            yield from consolidate_table(pa.Table.from_batches(held, schema)).to_batches(_BATCH_ROWS)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _spilled(schema: pa.Schema, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The Z-set added up by DuckDB."""
    import duckdb

    failures: list[HeadwaterError] = []
    # Names of its own: DuckDB does not tell columns apart whose names differ only in case.
    renamed = pa.schema([f.with_name(f"c{i}") for i, f in enumerate(schema)])

    def watched() -> Iterator[pa.RecordBatch]:
        try:
            for batch in source:
                yield pa.RecordBatch.from_arrays([_from_start(a) for a in batch.columns], schema=renamed)
        except HeadwaterError as e:  # DuckDB would keep its text only
            failures.append(e)
            raise

    now = settings.current()
    with tempfile.TemporaryDirectory(dir=scratch_parent(), prefix="headwater-") as spill:
        config: dict[str, Any] = {"temp_directory": os.path.join(spill, "duckdb")}
        if now.memory_limit_bytes:
            config["memory_limit"] = f"{now.memory_limit_bytes}B"
        if now.threads:
            config["threads"] = now.threads
        with duckdb.connect(":memory:", config=config) as con:
            con.execute("SET TimeZone = 'UTC'")
            con.execute("SET preserve_insertion_order = false")
            con.register("change", pa.RecordBatchReader.from_batches(renamed, watched()))
            try:
                for batch in con.sql(_query(renamed)).to_arrow_reader(_BATCH_ROWS):
                    arrays = [a.cast(f.type) for a, f in zip(batch.columns, schema, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            except duckdb.ConversionException:
                raise ConstraintError.weight_overflow() from None
            except (duckdb.Error, pa.ArrowException, OSError) as e:
                if failures:
                    raise failures[0] from None
                if "Conversion Error" in str(e):  # met while rows are read, it comes as an error of Arrow's
                    raise ConstraintError.weight_overflow() from None
                raise StorageError.failed(spill, str(e).split("\n", 1)[0]) from e


def _from_start(array: pa.Array) -> pa.Array:
    """The array with nested values copied to begin at their buffers' starts: DuckDB refuses slices of some structs."""
    if not pa.types.is_nested(array.type):
        return array
    return pa.concat_arrays([array, array.slice(0, 0)])


def _query(schema: pa.Schema) -> str:
    *columns, weight = schema
    keys = [f.name for f in columns]
    for f in columns:
        if pa.types.is_floating(f.type):
            keys.append(f"signbit({f.name})")
        elif pa.types.is_nested(f.type):
            keys.append(f"CAST({f.name} AS VARCHAR)")
    shown = ", ".join([*(f.name for f in columns), f"CAST(sum({weight.name}) AS BIGINT) AS {weight.name}"])
    groups = f"GROUP BY {', '.join(keys)} " if keys else ""
    return f"SELECT {shown} FROM change {groups}HAVING sum({weight.name}) <> 0"
