"""Vectors and Arrow: there and back, of every type, whole and sliced."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater.sql.vectorised import Vector, vector_of
from headwater.sql.vectorised.vector import constant_of, dense, inner, is_arrow, is_wide, nulls, outer, validity

from .agreement import awkward

_WIDE = [Decimal(10**37), Decimal(-(10**37)), None, Decimal(2**63), Decimal(-(2**63)), Decimal(5)]
_ARRAYS = [
    pa.array([True, False, None, True]),
    *(pa.array([1, -(2 ** (b - 1)), None, 2 ** (b - 1) - 1], f"int{b}") for b in (8, 16, 32, 64)),
    pa.array([1.5, math.inf, None, -0.0], pa.float32()),
    pa.array([1.5, -math.inf, None, -0.0], pa.float64()),
    pa.array([date(1, 1, 1), date(9999, 12, 31), None, date(1969, 12, 31)]),
    pa.array([datetime(1, 1, 1), None, datetime(2024, 2, 29, 1, 2, 3, 4)], pa.timestamp("us")),
    pa.array([datetime(2024, 2, 29, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
    pa.array([Decimal("-1.50"), None, Decimal("9999999999999999.99")], pa.decimal128(18, 2)),
    pa.array(_WIDE, pa.decimal128(38, 0)),
    pa.array([Decimal(5), None, Decimal(-7)], pa.decimal128(38, 0)),
    pa.array(["a", None, "ß🤦", ""]),
    pa.array([b"a", None, b"\xff"]),
    pa.array([[1], None, []], pa.list_(pa.int32())),
    pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())])),
    pa.nulls(3),
]


@pytest.mark.parametrize("array", _ARRAYS, ids=lambda a: str(a.type))
def test_there_and_back(array: pa.Array) -> None:
    for part in (array, array.slice(1), array.slice(1, 1), array.slice(0, 0), pa.concat_arrays([array] * 5).slice(3)):
        vector = vector_of(part)
        assert vector.dtype == array.type and len(vector) == len(part)
        for one in (vector, awkward(vector), outer(inner(vector)), outer(awkward(inner(vector)))):
            back = one.to_arrow()
            back.validate(full=True)
            assert back.equals(part), (back, part)


@pytest.mark.parametrize("array", _ARRAYS, ids=lambda a: str(a.type))
def test_what_numpy_holds(array: pa.Array) -> None:
    vector = vector_of(array)
    assert isinstance(vector.values, np.ndarray) != (is_arrow(array.type) or is_wide(array.type))
    mask = validity(vector)
    expected = [v.is_valid for v in array]
    assert (mask is None and all(expected)) or (mask is not None and mask.tolist() == expected)


def test_other_layouts_are_the_same_type() -> None:
    assert vector_of(pa.array(["a", None], pa.large_string())).dtype == pa.string()
    assert vector_of(pa.array(["a", None]).dictionary_encode()).to_arrow().to_pylist() == ["a", None]
    assert vector_of(pa.chunked_array([pa.array([1]), pa.array([2])])).values.tolist() == [1, 2]
    assert len(vector_of(pa.chunked_array([], pa.int32()))) == 0


def test_words_are_not_copied_where_the_layout_allows_it() -> None:
    array = pa.array(range(10), pa.int64())
    assert vector_of(array).values.base is not None
    decimals = vector_of(pa.array([Decimal(1), Decimal(2)], pa.decimal128(10, 0))).values
    assert decimals.strides == (16,)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, pa.bool_()),
        (7, pa.int8()),
        (1.5, pa.float32()),
        (Decimal("1.50"), pa.decimal128(4, 2)),
        (Decimal(10**30), pa.decimal128(38, 0)),
        (date(2024, 2, 29), pa.date32()),
        (datetime(2024, 2, 29, 1), pa.timestamp("us")),
        ("ß", pa.string()),
        (b"x", pa.binary()),
        (None, pa.int32()),
        (None, pa.string()),
    ],
)
def test_constants_are_columns_of_one_value(value: object, dtype: pa.DataType) -> None:
    made = outer(dense(constant_of(value, dtype), 3)).to_arrow()
    assert made.type == dtype and made.to_pylist() == [value] * 3
    assert outer(nulls(dtype, 2)).to_arrow().to_pylist() == [None, None]


def test_a_mask_beside_an_arrow_array_agrees_with_it() -> None:
    both = Vector(pa.string(), pa.array(["a", "b"]), np.array([True, False]))
    assert both.to_arrow().to_pylist() == ["a", None]
