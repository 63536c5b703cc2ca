"""Moving: rows of one layout as rows of another, column by column. The one way in which rows change their layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headwater.incremental.layout import Layout
from headwater.incremental.packing import Rows
from headwater.kernels.arrange import arrange, rearrange

__all__ = ["Moving", "bit_moves", "word_moves"]

Moves = npt.NDArray[np.int64]


def word_moves(source: Layout, target: Layout, pairs: Sequence[tuple[int, int]]) -> Moves:
    """Which words go where, for pairs of columns (from, to)."""
    moves = [
        (source.columns[a].word + k, target.columns[b].word + k)
        for a, b in pairs
        for k in range(source.columns[a].words)
    ]
    return np.array(moves, dtype=np.int64).reshape(len(moves), 2)


def bit_moves(source: Layout, target: Layout, pairs: Sequence[tuple[int, int]]) -> Moves:
    """Which null bits go where, for pairs of columns of which the first may be null."""
    moves = []
    for a, b in pairs:
        x, y = source.columns[a], target.columns[b]
        if x.nullable:
            moves.append((x.null_word, x.null_bit, y.null_word, y.null_bit))
    return np.array(moves, dtype=np.int64).reshape(len(moves), 4)


class Moving:
    """Copies columns by pairs (from, to), and the weight to the target's weight of this number, or not at all."""

    __slots__ = ("bits", "moves", "target")

    def __init__(
        self, source: Layout, target: Layout, pairs: Sequence[tuple[int, int]], *, weight: int | None = 0
    ) -> None:
        self.target = target
        last = [] if weight is None else [[source.width - 1, target.payload + weight]]
        self.moves = np.concatenate(
            [word_moves(source, target, pairs), np.array(last, dtype=np.int64).reshape(len(last), 2)]
        )
        self.bits = bit_moves(source, target, pairs)

    def moved(self, rows: Rows) -> Rows:
        """The rows in the target's layout, with its order words; what is not moved is zero."""
        out = np.empty((len(rows), self.target.width), dtype=np.int64)
        rearrange(rows, self.moves, self.bits, self.target.makings, out)
        return out

    def add_to(self, rows: Rows, out: Rows) -> None:
        """Fill these columns of rows whose other columns came from elsewhere; the words were zero."""
        arrange(rows, self.moves, self.bits, out)
