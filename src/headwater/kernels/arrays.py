"""The arrays that kernels take, by name. Their types say how many dimensions they have: a kernel's annotations are its
signature.

All arrays are contiguous. A kernel is compiled once, for exactly the types that its annotations name (`signature`), so
it can be compiled before anybody calls it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

import numpy as np

__all__ = [
    "READ_ONLY",
    "ByteRows",
    "Bytes",
    "Directory",
    "DoubleRows",
    "Doubles",
    "Flags",
    "GivenBytes",
    "GivenDoubles",
    "GivenFlags",
    "GivenHashes",
    "GivenPositions",
    "Hashes",
    "Lanes",
    "Positions",
    "Ranges",
    "Rows",
    "read_only",
]

READ_ONLY: Final = "read-only"

_Type = TypeVar("_Type", bound=np.dtype[Any])

Rows = np.ndarray[tuple[int, int], np.dtype[np.int64]]
"""Rows of 64-bit words."""
Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]
"""One hash for each row."""
Lanes = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
"""One hash of several words for each row."""
Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Whole numbers: positions, times, weights."""
Directory = np.ndarray[tuple[int], np.dtype[np.int32]]
"""Positions of fewer than 2^31 rows."""
Ranges = np.ndarray[tuple[int, int], np.dtype[np.int32]]
"""Pairs of such positions, or chains of them."""
Doubles = np.ndarray[tuple[int], np.dtype[np.float64]]
DoubleRows = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""Rows of doubles, or a column of doubles in each row."""
ByteRows = np.ndarray[tuple[int, int], np.dtype[np.uint8]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
GivenDoubles = Annotated[Doubles, READ_ONLY]
"""Numbers that a kernel only reads, often in memory of Arrow's; to be passed by `read_only`."""
GivenPositions = Annotated[Positions, READ_ONLY]
GivenBytes = Annotated[Bytes, READ_ONLY]
GivenFlags = Annotated[Flags, READ_ONLY]
GivenHashes = Annotated[Hashes, READ_ONLY]


def read_only(array: np.ndarray[tuple[int], _Type]) -> np.ndarray[tuple[int], _Type]:
    """The same array, not to be written: to the compiler that is another type, and each kernel has one.

    >>> read_only(np.zeros(1)).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
