"""Z-sets: rows with integer weights, in words.

A `ZSet` is what flows through a circuit: a matrix of words in a `Layout`. It is a value: nothing changes it, and
operations give new ones. The same row may be listed more than once; `consolidate` adds the weights up, sorts the rows
by (hash of the key, key, order, rest), and drops what comes to nothing. Z-sets are a commutative group: ``a + b``,
``-a``, ``a - b``, with the empty one as zero. That group, and integer multiples, is all that incremental computation
rests on.

`ChangeBatch` is the same thing for the world outside, as an Arrow table, with a consolidation of its own
(`base/consolidation.py` says why). Invariant: ``owners`` keeps alive the memory
that the rows' long strings lie in. A Z-set is ``net`` if each row is listed once and with a weight, in whatever order.

>>> z = ZSet.from_arrow(pa.table({"id": [1, 2, 2]}))
>>> (z + z - z.filtered(np.array([0]))).consolidate().to_change().to_arrow().to_pylist()
[{'id': 1, '_weight': 1}, {'id': 2, '_weight': 4}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.change import ChangeBatch
from headwater.base.errors import ConstraintError
from headwater.incremental.layout import Layout
from headwater.incremental.packing import Owners, Rows, pack_table, unpack_table
from headwater.kernels import consolidate as kernels
from headwater.kernels.arrange import fill_order_words, take
from headwater.kernels.hash import hash_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Hashes", "Positions", "ZSet", "concatenate"]

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]


class ZSet:
    """Rows with weights. Made by `from_change`, `from_arrow`, or by operators."""

    __slots__ = ("_hashes", "consolidated", "layout", "net", "owners", "rows")

    def __init__(
        self,
        layout: Layout,
        rows: Rows,
        owners: Owners = (),
        *,
        hashes: Hashes | None = None,
        consolidated: bool = False,
        net: bool = False,
    ) -> None:
        assert rows.ndim == 2 and rows.shape[1] == layout.width, "rows are in another layout"
        self.layout = layout
        self.rows = rows
        self.owners = owners
        self._hashes = hashes
        self.consolidated = consolidated or not len(rows)
        self.net = net or self.consolidated

    # -- making one ------------------------------------------------------------------------------------------------

    @classmethod
    def empty(cls, layout: Layout) -> ZSet:
        """The zero of the group."""
        return cls(layout, np.zeros((0, layout.width), dtype=np.int64))

    @classmethod
    def from_arrow(cls, table: pa.Table | pa.RecordBatch, *, weights: npt.NDArray[np.int64] | int = 1) -> ZSet:
        """Rows of Arrow with one weight, or with a weight each."""
        return cls.packed(Layout(table.schema), table, weights)

    @classmethod
    def packed(cls, layout: Layout, table: pa.Table | pa.RecordBatch, weights: npt.NDArray[np.int64] | int = 1) -> ZSet:
        """Rows of Arrow in a layout whose columns they have."""
        rows, owners = pack_table(layout, table)
        rows[:, -1] = weights
        fill_derived(layout, rows)
        return cls(layout, rows, owners)

    @classmethod
    def from_change(cls, change: ChangeBatch, layout: Layout | None = None) -> ZSet:
        """The rows and weights of a change."""
        return cls.packed(layout or Layout(change.schema), change.rows, change.weights)

    # -- looking at it ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many rows are listed; an upper bound for different ones unless it is consolidated."""
        return len(self.rows)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self.layout.schema

    @property
    def weights(self) -> npt.NDArray[np.int64]:
        """The weight of each row."""
        return self.rows[:, -1]

    @property
    def hashes(self) -> Hashes:
        """The hash of each row's key."""
        if self._hashes is None:
            self._hashes = hash_rows(self.rows, self.layout.key_parts)
        return self._hashes

    def to_arrow(self) -> pa.Table:
        """The rows with a last column ``_weight``."""
        return unpack_table(self.layout, self.rows)

    def to_change(self) -> ChangeBatch:
        """The same, as a change."""
        return ChangeBatch(self.to_arrow(), consolidated=self.net)

    # -- the group -------------------------------------------------------------------------------------------------

    def __add__(self, other: ZSet) -> ZSet:
        return concatenate([self, other], self.layout)

    def __neg__(self) -> ZSet:
        rows = self.rows.copy()
        weights = rows[:, self.layout.payload :]
        if (weights == np.iinfo(np.int64).min).any():
            raise ConstraintError.weight_overflow()
        weights[:] = -weights  # not np.negative(out=): numpy 2.4 gets it wrong for columns of a matrix
        return ZSet(self.layout, rows, self.owners, hashes=self._hashes, consolidated=self.consolidated)

    def __sub__(self, other: ZSet) -> ZSet:
        return self + -other

    def consolidate(self) -> ZSet:
        """The same Z-set with each row once, sorted, and none of weight zero."""
        if self.consolidated:
            return self
        bits = max(1, len(self.rows).bit_length() - 1)
        hashes, rows, _ = self.sorted_into(
            bits, np.empty((1 << bits) + 1, dtype=np.int32), np.empty(kernels.LINE, dtype=np.int64)
        )
        return ZSet(self.layout, rows, self.owners, hashes=hashes, consolidated=True)

    def netted(self) -> ZSet:
        """The same Z-set with each row once and none of weight zero, in any order."""
        return self if self.net else self.consolidate()

    def sorted_into(
        self, bits: int, directory: npt.NDArray[np.int32], line: npt.NDArray[np.int64]
    ) -> tuple[Hashes, Rows, int]:
        """The hashes and rows of the same Z-set consolidated, and a bound of their weights.

        ``directory`` and ``line`` become those of a run of them.
        """
        layout = self.layout
        n = len(self.rows)
        hashes = self._hashes
        hashed = hashes is not None
        if hashes is None:
            hashes = self._hashes = np.empty(n, dtype=np.uint64)
        out_hashes = np.empty(n, dtype=np.uint64)
        out = np.empty((n, layout.width), dtype=np.int64)
        count, most = kernels.consolidate(
            hashed,
            hashes,
            layout.key_parts,
            self.rows,
            layout.sort_parts,
            layout.payload,
            bits,
            out_hashes,
            out,
            directory,
            line,
        )
        if count == kernels.OVERFLOW:
            raise ConstraintError.weight_overflow()
        return (out_hashes, out, most) if count == n else (out_hashes[:count], out[:count], most)

    # -- rows ------------------------------------------------------------------------------------------------------

    def filtered(self, positions: Positions) -> ZSet:
        """The rows at these positions, which rise."""
        out = np.empty((len(positions), self.layout.width), dtype=np.int64)
        take(self.rows, positions, out)
        hashes = None if self._hashes is None else self._hashes[positions]
        return ZSet(self.layout, out, self.owners, hashes=hashes, consolidated=self.consolidated)

    def __repr__(self) -> str:
        return f"ZSet({len(self)} rows: {', '.join(self.layout.names)})"


def concatenate(parts: Iterable[ZSet], layout: Layout) -> ZSet:
    """The sum of Z-sets of one layout."""
    some = [p for p in parts if len(p)]
    if not some:
        return ZSet.empty(layout)
    if len(some) == 1:
        return some[0]
    assert all(p.layout is layout or p.layout == layout for p in some), "Z-sets of different layouts"
    owners = tuple({id(o): o for p in some for o in p.owners}.values())
    return ZSet(layout, np.concatenate([p.rows for p in some]), owners)


def fill_derived(layout: Layout, rows: Rows) -> None:
    """Fill the order words of rows that have their columns."""
    if layout.order_words and len(rows):
        fill_order_words(rows, layout.makings)
