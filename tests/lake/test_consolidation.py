"""Consolidation of streams: in memory and in DuckDB the answer is that of a plain Counter, for every type of a table."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base.change import WEIGHT, ChangeBatch
from headwater.lake.consolidation import consolidate_stream
from headwater.lakehouse import Lake
from headwater.testing import oracles, strategies

WEIGHTED = pa.field(WEIGHT, pa.int64(), False)
FLAT = [
    *[pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary()],
    *[pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(10, 2), pa.decimal128(38, 9)],
]
NESTED = [
    pa.list_(pa.float64()), pa.list_(pa.string()), pa.struct([("f", pa.float32()), ("s", pa.string())]),
    pa.map_(pa.string(), pa.float64()), pa.list_(pa.struct([("d", pa.decimal128(12, 3)), ("b", pa.binary())])),
    pa.struct([("l", pa.list_(pa.timestamp("us"))), ("n", pa.struct([("x", pa.float64())]))]),
]  # fmt: skip


def counted(table: pa.Table) -> dict[Hashable, int]:
    """The oracle: weights by row, one row at a time."""
    total: Counter[Hashable] = Counter()
    columns = [[oracles.same_value(v) for v in column] for column in table.columns[:-1]]
    rows: Iterator[Any] = zip(*columns, strict=True) if columns else iter([()] * table.num_rows)
    for row, weight in zip(rows, table.column(WEIGHT).to_pylist(), strict=True):
        total[row] += weight
    return {row: weight for row, weight in total.items() if weight}


@st.composite
def weighted(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from([*FLAT, *NESTED]), min_size=1, max_size=4))
    # Names that differ in case only, or are a word of SQL, are names too.
    names = ["a", "A", "select", 'x"y'][: len(kinds)]
    rows = draw(st.integers(0, 12))
    columns = [draw(strategies.arrays(kind, rows=rows)) for kind in kinds]
    weights = draw(st.lists(st.integers(-2, 2), min_size=rows, max_size=rows))
    return pa.table(
        [*columns, pa.array(weights, pa.int64())], schema=pa.schema([*map(pa.field, names, kinds), WEIGHTED])
    )


@pytest.mark.long
@settings(max_examples=2 * settings().max_examples)
@given(weighted())
def test_both_ways_are_the_counter(table: pa.Table) -> None:
    for held_rows in (-1, 1 << 20):  # DuckDB, and in memory
        found = consolidate_stream(table.to_reader(max_chunksize=3), held_rows=held_rows).read_all()
        assert found.schema == table.schema
        assert counted(found) == counted(table)
        assert found.num_rows == len(counted(table)), "each row once"
    assert ChangeBatch.from_table(table).consolidate().to_arrow().num_rows == len(counted(table))


def test_what_is_equal_in_sql_and_different_here() -> None:
    floats = [0.0, -0.0, float("nan"), float("nan"), None]
    table = pa.table({"f": floats, "l": [[f] for f in floats], WEIGHT: [1, -1, 1, 1, 1]})
    table = table.cast(table.schema.set(2, WEIGHTED))
    for held_rows in (-1, 100):
        found = consolidate_stream(table.to_reader(), held_rows=held_rows).read_all()
        shown = sorted((str(r["f"]), str(r["l"]), r[WEIGHT]) for r in found.to_pylist())
        assert shown == [("-0.0", "[-0.0]", -1), ("0.0", "[0.0]", 1), ("None", "[None]", 1), ("nan", "[nan]", 2)]


def test_rows_without_columns() -> None:
    table = pa.table([pa.array([2, -1, 3])], schema=pa.schema([WEIGHTED]))
    for held_rows in (-1, 100):
        assert consolidate_stream(table.to_reader(), held_rows=held_rows).read_all().to_pylist() == [{WEIGHT: 4}]
        nothing = table.slice(0, 0).to_reader()
        assert consolidate_stream(nothing, held_rows=held_rows).read_all().num_rows == 0


def test_a_weight_that_does_not_fit() -> None:
    largest = (1 << 63) - 1
    table = pa.table([pa.array([1, 1, 2]), pa.array([largest, 1, 5])], schema=pa.schema([("x", pa.int64()), WEIGHTED]))
    for held_rows in (-1, 100):
        with pytest.raises(hw.ConstraintError) as refused:
            consolidate_stream(table.to_reader(), held_rows=held_rows).read_all()
        assert refused.value.code == hw.ConstraintError.weight_overflow().code


def test_what_a_reader_raises_comes_through() -> None:
    schema = pa.schema([("x", pa.int64()), WEIGHTED])

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([pa.array([1]), pa.array([1])], schema=schema)
        raise hw.NotFoundError.data_file("gone.parquet", "there", 3)

    for held_rows in (-1, 100):
        reader = pa.RecordBatchReader.from_batches(schema, broken())
        with pytest.raises(hw.NotFoundError, match=r"gone\.parquet"):
            consolidate_stream(reader, held_rows=held_rows).read_all()


def test_a_large_stream_goes_over_to_the_disk() -> None:
    """What does not fit in memory is added up all the same, whichever part of it was read before that was known."""
    ids = np.arange(300_000)
    schema = pa.schema([("x", pa.int64()), WEIGHTED])
    parts = [
        pa.RecordBatch.from_arrays([pa.array(ids), pa.array(np.full(len(ids), w))], schema=schema) for w in (1, 2, -3)
    ]
    odd = pa.RecordBatch.from_arrays([pa.array([7]), pa.array([5])], schema=schema)
    for held_rows in (1, 450_000, 10_000_000):
        reader = pa.RecordBatchReader.from_batches(schema, iter([*parts, odd]))
        assert consolidate_stream(reader, held_rows=held_rows).read_all().to_pylist() == [{"x": 7, WEIGHT: 5}]


@pytest.mark.long
def test_a_small_change_starts_no_engine(lake: Lake) -> None:
    """Reading the change of an update loads no DuckDB at all."""
    table = lake.write("t", [{"id": i} for i in range(100)], properties={"delta.enableDeletionVectors": "false"})
    table.delete("id = 7")
    program = (
        "import sys, headwater as hw\n"
        "from headwater.lake import changes, snapshot\n"
        "from headwater.base.storage import open_storage\n"
        "found = changes.changes(snapshot.latest(open_storage(sys.argv[1])), 0)\n"
        "assert found.to_arrow().to_pylist() == [{'id': 7, '_weight': -1}]\n"
        "assert 'duckdb' not in sys.modules\n"
    )
    if "://" not in table.location:
        subprocess.run([sys.executable, "-c", program, table.location], check=True, timeout=PATIENCE_S)
