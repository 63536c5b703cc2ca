"""Rows cut into tables at random: an answer must not depend on it."""

from __future__ import annotations

import random

import pyarrow as pa

__all__ = ["CutAtRandom"]


class CutAtRandom:
    """Cuts tables into a few pieces, empty ones among them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, table: pa.Table) -> list[pa.Table]:
        count = self._random.randint(0, 3)
        edges = sorted(self._random.randint(0, table.num_rows) for _ in range(count))
        return [table.slice(a, b - a) for a, b in zip([0, *edges], [*edges, table.num_rows], strict=True)]
