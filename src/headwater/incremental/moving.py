"""Moving: rows of one layout as rows of another, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.incremental.arrangement import bit_moves, word_moves
from headwater.incremental.layout import Layout
from headwater.incremental.packing import Rows
from headwater.kernels.arrange import rearrange

__all__ = ["Moving"]


class Moving:
    """Copies columns by pairs (from, to), and the weight; columns of the target that are not named are zero."""

    __slots__ = ("_bits", "_moves", "target")

    def __init__(self, source: Layout, target: Layout, pairs: Sequence[tuple[int, int]]) -> None:
        self.target = target
        weight = np.array([[source.width - 1, target.width - 1]], dtype=np.int64)
        self._moves = np.concatenate([word_moves(source, target, pairs), weight])
        self._bits = bit_moves(source, target, pairs)

    def moved(self, rows: Rows) -> Rows:
        """The rows in the target's layout."""
        out = np.empty((len(rows), self.target.width), dtype=np.int64)
        rearrange(rows, self._moves, self._bits, self.target.makings, out)
        return out
