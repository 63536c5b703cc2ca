"""Row keys agree with a one-by-one comparison of values, for every Arrow type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base import rowkey
from headwater.base.errors import UnsupportedError
from headwater.testing import oracles, strategies


def groups(ids: list[int]) -> list[int]:
    """Renumber by first appearance, so that two numberings of the same groups are equal."""
    seen: dict[int, int] = {}
    return [seen.setdefault(code, len(seen)) for code in ids]


def expected(table: pa.Table) -> list[int]:
    seen: dict[object, int] = {}
    rows = zip(*([oracles.same_value(v) for v in column] for column in table.columns), strict=True)
    return [seen.setdefault(row, len(seen)) for row in rows]


@settings(max_examples=2 * settings().max_examples)
@given(strategies.tables())
def test_row_codes_group_like_the_oracle(table: pa.Table) -> None:
    codes = rowkey.row_codes(table)
    assert codes.ids.tolist() == expected(table)
    assert codes.bound == len(set(codes.ids.tolist()))
    assert table.num_rows == 0 or codes.ids[codes.first_rows()].tolist() == list(range(codes.bound))


@given(st.data())
def test_column_codes_of_every_type(data: st.DataObject) -> None:
    kind = data.draw(strategies.types(depth=3))
    column = data.draw(strategies.arrays(kind, rows=data.draw(st.integers(0, 15))))
    codes = rowkey.column_codes(column)
    assert groups(codes.ids.tolist()) == expected(pa.table([column], names=["x"]))
    assert all(0 <= code < codes.bound for code in codes.ids)


@given(st.data())
def test_take_rows_of_every_type(data: st.DataObject) -> None:
    table = data.draw(strategies.tables(min_rows=1))
    rows = data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=8))
    taken = rowkey.take_rows(table, np.array(rows, dtype=np.int64))
    assert taken.schema == table.schema
    assert [expected(pa.concat_tables([taken.slice(i, 1), table.slice(row, 1)])) for i, row in enumerate(rows)] == [
        [0, 0] for _ in rows
    ]


def test_what_lies_below_a_null_is_not_looked_at() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4, 4]), pa.array([1, 2, 8, 9]), mask=pa.array([True, True, False]))
    assert groups(rowkey.column_codes(lists).ids.tolist()) == [0, 0, 1]
    structs = pa.StructArray.from_arrays([pa.array([1, 2, None])], names=["a"], mask=pa.array([True, True, False]))
    assert groups(rowkey.column_codes(structs).ids.tolist()) == [0, 0, 1]
    bits = pa.array(np.array([np.nan, 5.0]), mask=np.array([True, True]))
    assert groups(rowkey.column_codes(bits).ids.tolist()) == [0, 0]
    raw = pa.py_buffer(np.array([7, 8, 9], dtype=np.int64))
    ints = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x04"), raw])
    assert groups(rowkey.column_codes(ints).ids.tolist()) == [0, 0, 1]
    fixed = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4]), 2, mask=pa.array([True, True]))
    assert groups(rowkey.column_codes(fixed).ids.tolist()) == [0, 0]


def test_all_nans_are_one_and_the_zeros_are_two() -> None:
    bits = np.array([0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8000000000123, 0, 1 << 63], dtype=np.uint64)
    assert groups(rowkey.column_codes(pa.array(bits.view(np.float64))).ids.tolist()) == [0, 0, 0, 1, 2]


def test_dictionaries_are_equal_by_value() -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", "b", None]))
    second = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["b", "a"]))
    codes = rowkey.column_codes(pa.chunked_array([first, second]))
    assert groups(codes.ids.tolist()) == [0, 1, 2, 2, 0, 1, 0]


def test_lists_differ_by_their_borders() -> None:
    column = pa.array([[[1], [2]], [[1, 2]], [[1, 2], []], [[]], [], None, [None], [[1], [2]]])
    assert groups(rowkey.column_codes(column).ids.tolist()) == [0, 1, 2, 3, 4, 5, 6, 0]


def test_list_views_and_extension_types() -> None:
    views = pa.array([[1, 2], None, [1, 2], []], type=pa.list_view(pa.int64()))
    assert groups(rowkey.column_codes(views).ids.tolist()) == [0, 1, 0, 2]
    uuids = pa.array([b"a" * 16, b"b" * 16, b"a" * 16, None], type=pa.uuid())
    assert groups(rowkey.column_codes(uuids).ids.tolist()) == [0, 1, 0, 2]
    intervals = pa.array([(1, 2, 3), (1, 2, 4), (1, 2, 3)], type=pa.month_day_nano_interval())
    assert groups(rowkey.column_codes(intervals).ids.tolist()) == [0, 1, 0]


def test_many_wide_columns_are_renumbered_on_the_way() -> None:
    rng = np.random.default_rng(7)
    base = rng.integers(-(2**62), 2**62, size=(2_000, 6))
    rows = np.concatenate([base, base])
    codes = rowkey.row_codes(pa.table([pa.array(rows[:, i]) for i in range(6)], names=list("abcdef")))
    assert codes.ids.tolist() == [*range(2_000), *range(2_000)]


def test_small_ranges_at_the_ends_of_the_types() -> None:
    cases: list[tuple[list[int | None], pa.DataType]] = [
        ([2**64 - 1, 2**64 - 2] * 4, pa.uint64()),
        ([-(2**63), 1 - 2**63, None] * 4, pa.int64()),
    ]
    for values, kind in cases:
        codes = rowkey.row_codes(pa.table([pa.array(values, type=kind)], names=["x"]))
        assert codes.ids.tolist() == groups([-1 if v is None else v for v in values])


def test_a_table_without_columns_or_rows() -> None:
    assert rowkey.row_codes(pa.table({})).bound == 0
    assert rowkey.row_codes(pa.table({"a": pa.array([], pa.list_(pa.int8()))})).ids.tolist() == []
    assert rowkey.row_codes(pa.table({"a": [1, 1]}), columns=[]).ids.tolist() == [0, 0]


def test_unions_are_refused_by_name() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(UnsupportedError, match=r"`u\.v`"):
        rowkey.row_codes(pa.table({"u": pa.StructArray.from_arrays([union], names=["v"])}))
