"""Arrangements: the same rows in another layout, with the columns of a key first.

Moving a row between layouts is moving words and null bits, and making the order words anew. `Arrangement` prepares the
tables for the kernel once; `apply` then costs one call.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.incremental.layout import Layout, Order
from headwater.incremental.moving import Moving
from headwater.incremental.zset import ZSet

__all__ = ["Arrangement"]


class Arrangement:
    """How rows of one layout become rows of another.

    >>> from headwater.incremental.layout import Layout
    >>> source = Layout(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    >>> Arrangement(source, ["b", "a"], keys=1).target.names
    ['b', 'a']
    """

    __slots__ = ("moving", "same", "source", "target")

    def __init__(
        self, source: Layout, columns: Sequence[str], *, keys: int, order: Sequence[Order] = (), weights: int = 1
    ) -> None:
        self.source = source
        at = [source.schema.get_field_index(name) for name in columns]
        assert min(at, default=0) >= 0, "an arrangement of unknown columns"
        self.target = Layout(pa.schema([source.schema.field(i) for i in at]), keys=keys, order=order, weights=weights)
        pairs = list(zip(at, range(len(at)), strict=True))
        weight = 0 if weights == source.weights == 1 else None
        self.moving = Moving(source, self.target, pairs, weight=weight)
        self.same = (
            at == list(range(len(source.columns)))
            and not self.target.order_words
            and not source.order_words
            and weights == source.weights
        )

    def apply(self, zset: ZSet) -> ZSet:
        """The same rows, in the target's layout."""
        if self.same:  # only the key differs: the words stand where they stood
            return ZSet(self.target, zset.rows, zset.owners)
        return ZSet(self.target, self.moving.moved(zset.rows), zset.owners)
