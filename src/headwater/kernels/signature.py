"""The signature of a kernel, read from its annotations."""

from __future__ import annotations

import typing
from typing import Any

import numpy as np
from numba import from_dtype, types

from headwater.kernels.arrays import READ_ONLY

__all__ = ["signature"]

_SCALARS = {bool: types.boolean, float: types.float64, int: types.int64}


def signature(function: Any) -> tuple[Any, ...]:
    """The types that the compiler has for the arguments of a function, by its annotations.

    >>> from headwater.kernels.hash import hash_rows
    >>> signature(hash_rows.py_func)
    (Array(int64, 2, 'C', False, aligned=True), Array(int64, 2, 'C', False, aligned=True))
    """
    hints = typing.get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    return tuple(_type_of(hint) for hint in hints.values())


def _type_of(hint: Any) -> Any:
    if hint in _SCALARS:
        return _SCALARS[hint]
    is_read_only = False
    if typing.get_origin(hint) is typing.Annotated:
        hint, *marks = typing.get_args(hint)
        is_read_only = READ_ONLY in marks
    assert typing.get_origin(hint) is np.ndarray, f"a kernel cannot take {hint}"
    shape, dtype = typing.get_args(hint)
    dimensions, (scalar,) = len(typing.get_args(shape)), typing.get_args(dtype)
    return types.Array(from_dtype(np.dtype(scalar)), dimensions, "C", readonly=is_read_only)
