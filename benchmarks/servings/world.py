"""The rows that every competitor serves: string keys, float columns, and for some runs strings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

__all__ = ["COLUMNS", "STRING_ROWS", "World"]

COLUMNS = [f"c{k}" for k in range(10)]
STRING_ROWS = 500_000
"""So many rows have their strings in all servers; ours have all of them."""


@dataclass(frozen=True)
class World:
    """``rows`` keys ``item_<n>`` with ten float32 columns each, and one string."""

    rows: int
    seed: int = 1
    chunk_rows: int = 500_000

    @cached_property
    def values(self) -> np.ndarray:  # type: ignore[type-arg]
        return np.random.default_rng(self.seed).random((self.rows, len(COLUMNS)), dtype=np.float32)

    def keys(self, numbers: np.ndarray) -> list[str]:  # type: ignore[type-arg]
        return [f"item_{n}" for n in numbers.tolist()]

    def title(self, number: int) -> str:
        return f"the title of item {number % 1000}"

    def chunks(self, *, strings: bool = False) -> list[pa.Table]:
        found = []
        for begin in range(0, self.rows, self.chunk_rows):
            end = min(self.rows, begin + self.chunk_rows)
            columns: dict[str, object] = {"key": pa.array([f"item_{n}" for n in range(begin, end)])}
            columns |= {
                name: pa.array(np.ascontiguousarray(self.values[begin:end, i])) for i, name in enumerate(COLUMNS)
            }
            if strings:
                columns["title"] = pa.array([self.title(n) for n in range(begin, end)])
            found.append(pa.table(columns))
        return found

    def requests(self, count: int, keys: int, seed: int) -> list[np.ndarray]:  # type: ignore[type-arg]
        rng = np.random.default_rng(seed)
        return [rng.integers(0, self.rows, keys) for _ in range(count)]
