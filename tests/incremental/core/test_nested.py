"""Nested values as bytes: there and back, and different bytes for different values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.incremental.core.columns import NAN, arrays, nested_types, plain

from headwater.base.errors import UnsupportedError
from headwater.incremental.layout import Layout
from headwater.incremental.nested import decode, encode


@given(st.data(), nested_types(), st.integers(0, 6))
def test_there_and_back(data: st.DataObject, dtype: pa.DataType, rows: int) -> None:
    array = data.draw(arrays(dtype, rows))
    encoded = encode(array)
    encoded.validate(full=True)
    assert encoded.is_null().to_pylist() == array.is_null().to_pylist()
    found = decode(encoded, dtype)
    found.validate(full=True)
    assert found.type == dtype
    assert plain(found.to_pylist()) == plain(array.to_pylist())


@given(st.data(), nested_types())
def test_bytes_are_equal_iff_values_are(data: st.DataObject, dtype: pa.DataType) -> None:
    array = data.draw(arrays(dtype, 6))
    seen: dict[object, bytes | None] = {}
    for value, code in zip(array.to_pylist(), encode(array).to_pylist(), strict=True):
        assert seen.setdefault(plain(value), code) == code
    assert len(set(seen.values())) == len(seen)


@given(st.data(), nested_types())
def test_a_value_has_the_same_bytes_wherever_it_stands(data: st.DataObject, dtype: pa.DataType) -> None:
    array = data.draw(arrays(dtype, 5))
    whole = encode(array).to_pylist()
    assert [encode(array.slice(i, 1)).to_pylist()[0] for i in range(5)] == whole
    again = pa.concat_arrays([array.slice(3), array.slice(0, 3)])
    assert encode(again).to_pylist() == whole[3:] + whole[:3]


def test_the_encoding_is_as_it_was() -> None:
    """It is on disk: these bytes never change."""
    dtype = pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int16()), ("b", pa.bool_())])))
    value = [("k", [{"a": 258, "b": True}, None]), ("", None)]
    expected = [
        "01 02000000 18000000 07000000",  # a map of two entries, of 24 and 7 bytes
        "01 01 01000000 6b 01 02000000",  # the first: its key, and a list of two
        "01 01 0201 01 01",  # 258, true
        "00 00 0000 00 00",
        "01 01 00000000 00",  # the second: an empty key, and null
    ]
    assert encode(pa.array([value], dtype)).to_pylist() == [bytes.fromhex("".join(expected))]


def test_the_order_of_a_maps_entries_counts() -> None:
    one, two = encode(
        pa.array([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]], pa.map_(pa.string(), pa.int8()))
    ).to_pylist()
    assert one != two


def test_all_nans_are_one() -> None:
    odd = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    one, two = encode(pa.array([[odd], [NAN]], pa.list_(pa.float64()))).to_pylist()
    assert one == two


def test_large_lists_and_strings() -> None:
    dtype = pa.large_list(pa.large_string())
    array = pa.array([["a", None, "x" * 300], None, []], dtype)
    assert decode(encode(array), dtype).equals(array)


def test_a_long_list_is_no_loop() -> None:
    array = pa.array([["x" * (i % 7) for i in range(300_000)], []], pa.list_(pa.string()))
    assert decode(encode(array), array.type).equals(array)


def test_what_is_inside_has_to_be_known_too() -> None:
    with pytest.raises(UnsupportedError, match="dictionary"):
        Layout(pa.schema([("x", pa.struct([("a", pa.list_(pa.dictionary(pa.int8(), pa.string())))]))]))
