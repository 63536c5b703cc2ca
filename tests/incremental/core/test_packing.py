"""Arrow to words and back: every type, sliced, chunked, read-only, with and without nulls."""

from __future__ import annotations

import gc
import resource

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.incremental.core.columns import FLAT, LEAVES, NAN, TEXTS, arrays, plain, tables

from headwater.base.errors import UnsupportedError
from headwater.incremental.layout import Layout
from headwater.incremental.packing import pack, pack_column, unpack, unpack_column
from headwater.incremental.zset import ZSet


def _back(table: pa.Table) -> pa.Table:
    return ZSet.from_arrow(table).to_arrow()


@pytest.mark.long
@given(tables(nested=True))
def test_a_table_comes_back(table: pa.Table) -> None:
    back = _back(table)
    back.validate(full=True)
    assert back.drop_columns("_weight").schema == table.schema
    assert plain(back.drop_columns("_weight").to_pylist()) == plain(table.to_pylist())
    assert back["_weight"].to_pylist() == [1] * table.num_rows


@pytest.mark.parametrize("dtype", FLAT, ids=str)
def test_every_type_with_and_without_nulls(dtype: pa.DataType) -> None:
    @given(st.data(), st.booleans())
    def check(data: st.DataObject, nullable: bool) -> None:
        array = data.draw(arrays(dtype, data.draw(st.integers(0, 20)), nullable=nullable))
        layout = Layout(pa.schema([pa.field("before", pa.int64()), pa.field("x", dtype, nullable)]))
        before = pa.array([None] * len(array), pa.int64())
        rows, owners = pack(layout, [before, array], len(array))
        placed = layout.column("x")
        out = np.zeros_like(rows)
        keep: list[object] = []
        pack_column(out, placed, array, keep)
        assert (out[:, placed.word] == rows[:, placed.word]).all() or placed.is_slot
        for found in (unpack(layout, rows)[1], unpack_column(placed, rows), unpack_column(placed, out)):
            found.validate(full=True)
            assert found.type == dtype
            assert plain(_view(found)) == plain(_view(array))
        nulls = np.asarray(array.is_null()) if len(array) else np.zeros(0, bool)
        assert not rows[nulls, placed.word : placed.word + placed.words].any()
        del owners, keep

    check()


def _view(array: pa.Array) -> list[object]:
    if pa.types.is_temporal(array.type) and not pa.types.is_date(array.type):
        array = array.cast(pa.int64())
    return array.to_pylist()  # type: ignore[no-any-return]


def test_more_than_64_columns() -> None:
    table = pa.table({f"c{i}": pa.array([i, None, -i]) for i in range(130)})
    layout = Layout(table.schema)
    assert layout.columns[0].word == 3  # behind three null words
    assert _back(table).drop_columns("_weight").equals(table)


def test_no_rows_and_no_columns() -> None:
    empty = pa.schema([(f"c{i}", dtype) for i, dtype in enumerate(FLAT)]).empty_table()
    assert _back(empty).drop_columns("_weight").equals(empty)
    nothing = pa.table({"a": [1, 2, 3]}).select([])
    zset = ZSet.from_arrow(nothing)
    assert (len(zset), zset.to_arrow().column_names) == (3, ["_weight"])
    assert zset.consolidate().weights.tolist() == [3]


def test_read_only_buffers_and_weights() -> None:
    data = np.arange(5)
    data.flags.writeable = False
    weights = np.array([1, 2, 3, 4, 5])
    weights.flags.writeable = False
    table = pa.table({"a": pa.array(data), "b": pa.Array.from_buffers(pa.int64(), 5, [None, pa.py_buffer(data)])})
    zset = ZSet.from_arrow(table, weights=weights)
    assert zset.to_arrow().to_pydict() == {"a": [0, 1, 2, 3, 4], "b": [0, 1, 2, 3, 4], "_weight": [1, 2, 3, 4, 5]}


def test_long_strings_outlive_the_batch_they_came_from() -> None:
    def make() -> ZSet:
        return ZSet.from_arrow(pa.table({"s": [f"{i:04d}" * 100 for i in range(200)]}))

    zset = make().consolidate()
    gc.collect()
    _scribble = [np.full(100_000, 0xAA, dtype=np.uint8) for _ in range(20)]
    assert sorted(zset.to_arrow()["s"].to_pylist()) == [f"{i:04d}" * 100 for i in range(200)]


def test_columns_of_arrow_outlive_the_rows() -> None:
    column = ZSet.from_arrow(pa.table({"s": TEXTS, "n": list(range(len(TEXTS)))})).to_arrow().column("s").slice(3)
    gc.collect()
    assert column.to_pylist() == TEXTS[3:]


def test_the_memory_of_tables_is_given_back() -> None:
    zset = ZSet.from_arrow(pa.table({"a": np.arange(100_000), "s": ["x" * 50] * 100_000}))
    zset.to_arrow()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):  # 700 MB, were it kept
        zset.to_arrow()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_all_nans_are_one_and_the_zeros_are_two() -> None:
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001], dtype=np.uint64).view(np.float64)
    zset = ZSet.from_arrow(pa.table({"x": pa.array(odd)})) + ZSet.from_arrow(pa.table({"x": [NAN, 0.0, -0.0]}))
    assert sorted(zset.consolidate().weights.tolist()) == [1, 1, 4]


def test_a_type_that_no_column_can_have_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="decimal256"):
        Layout(pa.schema([("x", pa.decimal256(50, 2))]))


def test_every_leaf_type_is_generated() -> None:
    assert len({str(dtype) for dtype, _ in LEAVES}) == len(LEAVES) >= 20
