"""Columns of an answer as numpy arrays: one 2-D view over the bytes that came, where their types allow it.

The problem: models want one matrix of features, and an answer is columns with nulls. The idea: columns of one numeric
type lie at a constant stride in a frame, so the matrix of rows and columns is a view of its bytes. Everything else is
copied into the common type of the columns.

Invariants: a null is NaN in floats and NaT in times; integers and booleans with nulls are refused unless a value for
them is given. A view is only handed out where every null already has the bytes of that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.serving.frame import FrameView

__all__ = ["matrix", "shared_type", "strided"]

Array = npt.NDArray[Any]


def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """The numpy type of a column's values: object where numpy has none of its own."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        number: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return number
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.dtype(f"{'M8' if pa.types.is_timestamp(kind) else 'm8'}[{kind.unit}]")
    if pa.types.is_date32(kind):
        return np.dtype("M8[D]")
    return np.dtype(object)


def shared_type(kinds: Sequence[pa.DataType]) -> np.dtype[Any] | None:
    """The numpy type of columns whose values can be used as they lie there: numbers or times, all of one type."""
    if len(set(kinds)) != 1:
        return None
    dtype = numpy_type(kinds[0])
    return dtype if dtype.kind in "iufmM" and 8 * dtype.itemsize == kinds[0].bit_width else None


def strided(view: FrameView, buffers: Sequence[int] | npt.NDArray[np.intp], dtype: np.dtype[Any]) -> Array | None:
    """Columns of one type as a 2-D array without a copy; None where they do not lie at a constant stride.

    ``buffers`` are the numbers of their values' buffers; the type has to have the width of the values.
    """
    places: list[int] = view.places[buffers].tolist()
    first, count = places[0], len(places)
    step = places[1] - first if count > 1 else dtype.itemsize
    if count > 2 and places != list(range(first, first + step * count, step) if step else ()):
        return None
    shape = (view.rows, count)
    if view.rows == 0:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, view.body, first, (dtype.itemsize, step))  # which checks that it lies in the bytes


def matrix(columns: Sequence[pa.Array], names: Sequence[str], fill: object) -> Array:
    """Columns as a 2-D array of their common type, copied."""
    rows = len(columns[0])
    if len(columns) == 1 and pa.types.is_list(columns[0].type):
        return _embeddings(columns[0], names[0])
    dtypes = [numpy_type(column.type) for column in columns]
    dtype = _common(dtypes)
    made = np.empty((len(columns), rows), dtype)
    for row, column, name in zip(made, columns, names, strict=True):
        row[:] = _values(column, name, dtype, fill)
    return made.T


def _common(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    try:
        found = np.result_type(*dtypes)
    except TypeError:
        return np.dtype(object)
    # numpy makes dates of integers, and numbers of booleans and times; only the second kind is meant here.
    return np.dtype(object) if found.kind in "mM" and {d.kind for d in dtypes} != {found.kind} else found


def _values(column: pa.Array, name: str, dtype: np.dtype[Any], fill: object) -> Array:
    if dtype.kind == "O":
        values = np.empty(len(column), object)
        values[:] = column.to_pylist()
        if fill is not None and column.null_count:
            values[~_valid(column)] = fill
        return values
    own = numpy_type(column.type)
    if not column.null_count:
        whole: Array = column.to_numpy(zero_copy_only=False).astype(own, copy=False)
        return whole
    missing = ~_valid(column)
    raw = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()) if own.kind in "mM" else column
    zero = pa.scalar(0).cast(raw.type)
    plain: Array = raw.fill_null(zero).to_numpy(zero_copy_only=False).astype(own).astype(dtype)
    if fill is not None:
        plain[missing] = fill
    elif dtype.kind == "f":
        plain[missing] = np.nan
    elif dtype.kind in "mM":
        plain[missing] = np.array("NaT", dtype)
    else:
        raise InputError.nulls_as_numbers(name, str(column.type), column.null_count)
    return plain


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _embeddings(column: pa.Array, name: str) -> Array:
    """Lists of one length as the rows of a 2-D array: a view where none is missing, NaN for those that are."""
    lengths = np.diff(column.offsets.to_numpy())
    valid = _valid(column)
    width = int(lengths[valid][0]) if valid.any() else 0
    dtype = numpy_type(column.type.value_type)
    items = column.values
    if (lengths[valid] != width).any() or items.null_count or dtype.kind not in "fiu":
        raise InputError.bad_argument("columns", [name], "lists of numbers that all have one length, for a 2-D array")
    if valid.all() or dtype.kind != "f":
        if not valid.all():
            raise InputError.nulls_as_numbers(name, str(column.type), column.null_count)
        whole: Array = column.flatten().to_numpy(zero_copy_only=True)
        return whole.reshape(len(column), width)
    made = np.full((len(column), width), np.nan, dtype)
    if width:
        made[valid] = column.drop_null().flatten().to_numpy().reshape(-1, width)
    return made
