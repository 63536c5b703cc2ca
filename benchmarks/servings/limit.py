"""The limit that memory sets: for each key one random entry of the index and one random record, both asked for ahead.

The walk does what a lookup cannot avoid, and nothing else: no hash, no comparison, no copy. It reads the very memory that
the table lies in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.serving.version import TableVersion

__all__ = ["memory_walk"]


def memory_walk(version: TableVersion) -> Any:
    """A function of entry and record numbers that touches both, and returns a sum of what it saw."""
    from numba import njit

    from headwater.kernels.memory import load, prefetch_at

    index, _, records, _, _, _ = (int(v) for v in version.mapped.table[-1])
    width = version.layout.width

    @njit(nogil=True)
    def walk(entries: Any, numbers: Any, index: int, records: int, width: int) -> int:
        total = 0
        for i in range(entries.size):
            prefetch_at(index + 8 * entries[i])
        for i in range(entries.size):
            total += load(index, entries[i])
            prefetch_at(records + numbers[i] * width)
        for i in range(entries.size):
            total += load(records + numbers[i] * width, 0)
        return total

    walk(np.zeros(1, np.int64), np.zeros(1, np.int64), index, records, width)
    return lambda entries, numbers: walk(entries, numbers, index, records, width)
