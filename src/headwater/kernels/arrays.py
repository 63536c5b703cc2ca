"""The arrays that kernels take, by name. Their types say how many dimensions they have: a kernel's annotations are its signature.

All arrays are contiguous. A kernel is compiled once, for exactly the types that its annotations name (`signature`), so it can be
compiled before anybody calls it.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Bytes", "Directory", "Doubles", "Flags", "Hashes", "Positions", "Ranges", "Rows"]

Rows = np.ndarray[tuple[int, int], np.dtype[np.int64]]
"""Rows of 64-bit words."""
Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]
"""One hash for each row."""
Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Whole numbers: positions, times, weights."""
Directory = np.ndarray[tuple[int], np.dtype[np.int32]]
"""Positions of fewer than 2^31 rows."""
Ranges = np.ndarray[tuple[int, int], np.dtype[np.int32]]
"""Pairs of such positions, or chains of them."""
Doubles = np.ndarray[tuple[int], np.dtype[np.float64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
