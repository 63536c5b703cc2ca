"""Arrangements: the same rows in another layout, with the columns of a key first.

Moving a row between layouts is moving words and null bits, and making the order words anew. `Arrangement` prepares the tables for
the kernel once; `apply` then costs one call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.incremental.layout import Layout, Order
from headwater.incremental.zset import ZSet
from headwater.kernels.arrange import rearrange

__all__ = ["Arrangement", "bit_moves", "word_moves"]

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


class Arrangement:
    """How rows of one layout become rows of another.

    >>> from headwater.incremental.layout import Layout
    >>> source = Layout(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    >>> Arrangement(source, ["b", "a"], keys=1).target.names
    ['b', 'a']
    """

    __slots__ = ("_bits", "_moves", "_same", "source", "target")

    def __init__(
        self, source: Layout, columns: Sequence[str], *, keys: int, order: Sequence[Order] = (), weights: int = 1
    ) -> None:
        self.source = source
        at = [source.schema.get_field_index(name) for name in columns]
        assert min(at, default=0) >= 0, "an arrangement of unknown columns"
        self.target = Layout(pa.schema([source.schema.field(i) for i in at]), keys=keys, order=order, weights=weights)
        pairs = list(zip(at, range(len(at)), strict=True))
        weight = [[source.width - 1, self.target.width - 1]] if weights == source.weights == 1 else []
        self._moves = np.concatenate(
            [word_moves(source, self.target, pairs), np.array(weight, dtype=np.int64).reshape(-1, 2)]
        )
        self._bits = bit_moves(source, self.target, pairs)
        self._same = (
            at == list(range(len(source.columns))) and not self.target.order_words and weights == source.weights
        )

    def apply(self, zset: ZSet) -> ZSet:
        """The same rows, in the target's layout."""
        if self._same:  # only the key differs: the words stand where they stood
            return ZSet(self.target, zset.rows, zset.owners)
        out = np.empty((len(zset), self.target.width), dtype=np.int64)
        rearrange(zset.rows, self._moves, self._bits, self.target.makings, out)
        return ZSet(self.target, out, zset.owners)
