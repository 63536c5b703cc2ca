"""Exact nearest neighbours among vectors, and all pairs within a distance, for a block of rows at a time.

The problem: distances of all pairs are a product of matrices, which is fast and inexact: its last bits depend on how
the blocks are cut, so that near ties would fall one way here and the other way there. The idea: the product only rules
pairs out. What it says is at most ``(d + 8)`` roundings of the largest possible term away from the truth; every pair
that could be near enough within that margin is computed again, as a double, by one formula that looks at the two
vectors only. Distances and answers are therefore the same however rows are cut.

Distances (less is nearer): ``l2`` is the Euclidean distance, ``cosine`` one minus the cosine, ``dot`` the inner product
with its sign turned. A vector that is null or has a null, an infinite or a NaN component finds nothing and is not
found; neither is, under ``cosine``, a vector of zeros, which has no direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError

__all__ = ["METRICS", "Probes", "Vectors", "vector_type", "vectors_of"]

METRICS = ("cosine", "dot", "l2")

Floats = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]

_BLOCK_VALUES = 1 << 22
_PAIR_VALUES = 1 << 21


def vector_type(field: pa.Field) -> tuple[pa.DataType, int | None]:
    """The type of a vector column's components, and how many there are if the type says so.

    >>> vector_type(pa.field("e", pa.list_(pa.float32(), 3)))
    (DataType(float), 3)
    """
    kind = field.type
    t = pa.types
    is_list = t.is_fixed_size_list(kind) or t.is_list(kind) or t.is_large_list(kind)
    if not is_list or not (t.is_float32(kind.value_type) or t.is_float64(kind.value_type)):
        raise UnsupportedError.column_type(field.name, str(kind), "vectors are lists of float or double")
    return kind.value_type, kind.list_size if t.is_fixed_size_list(kind) else None


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of some rows: a row of the matrix for each that has one, and which rows these are."""

    matrix: Floats
    rows: Indices


def vectors_of(column: pa.ChunkedArray, name: str, size: int | None, metric: str) -> Vectors:
    """The vectors of a column that can be compared.

    >>> column = pa.chunked_array([[[1.0, 2.0], None, [0.0, 0.0]]])
    >>> vectors_of(column, "e", None, "cosine").rows.tolist()
    [0]
    """
    there = np.flatnonzero(np.asarray(column.is_valid()))
    pieces = [chunk.drop_null() for chunk in column.chunks]
    lengths = np.concatenate([np.empty(0, np.int64), *(np.asarray(p.value_lengths()) for p in pieces)])
    sizes = np.unique(lengths)
    if size is None and len(sizes):
        size = int(sizes[0])
    if len(sizes) > 1 or (len(sizes) and sizes[0] != size):
        found = next(int(s) for s in sizes if s != size)
        raise InputError.bad_argument(name, f"a vector of {found} components", f"{size}, as the others have")
    item = column.type.value_type.to_pandas_dtype()
    flat = [np.asarray(p.flatten().fill_null(np.nan)) for p in pieces]
    matrix = np.concatenate([np.empty(0, item), *flat]).reshape(len(there), size or 0)
    usable = np.isfinite(matrix).all(axis=1)
    if metric == "cosine":
        usable &= matrix.any(axis=1)
    return Vectors(matrix[usable], there[usable]) if not usable.all() else Vectors(matrix, there)


class Probes:
    """Vectors whose neighbours are looked for.

    >>> probes = Probes(np.array([[0.0, 0.0]]), "l2")
    >>> found = probes.pairs(np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([2.0]))
    >>> [a.tolist() for a in found]
    [[0], [1], [1.0]]
    """

    def __init__(self, matrix: Floats, metric: str) -> None:
        self.metric = metric
        self.matrix = _exact_form(matrix.astype(np.float64), metric)
        self.working = self.matrix.astype(matrix.dtype)
        self.lengths = np.sqrt(np.sum(self.matrix * self.matrix, axis=1))

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def block_rows(self) -> int:
        """How many rows to compare at a time."""
        return max(64, _BLOCK_VALUES // max(1, len(self)))

    def pairs(self, block: Floats, within: Floats, k: int | None = None) -> tuple[Indices, Indices, Floats]:
        """Pairs whose distance is within each probe's limit: probes, rows of the block, distances.

        With ``k`` a pair is left out also where k others of the block are nearer, but none that ties with the k-th.
        """
        nothing = np.empty(0, np.int64)
        if not len(block) or not len(self):
            return nothing, nothing, np.empty(0)
        kind = np.float32 if block.dtype == np.float32 and self.working.dtype == np.float32 else np.float64
        with np.errstate(all="ignore"):
            rough, margin = self._rough(block.astype(kind, copy=False), kind)
            limit = self._limit(within)
            if k is not None and len(block) > k and not np.isfinite(limit).all():
                # A row with k others before it is no neighbour, whatever the limit.
                kth = np.partition(np.where(np.isnan(rough), np.inf, rough), k - 1, axis=1)[:, k - 1]
                limit = np.minimum(limit, kth.astype(np.float64) + margin)
            slack = margin + np.abs(limit) * (4 * np.finfo(kind).eps)
            bound = (limit + np.where(np.isfinite(slack), slack, 0.0)).astype(rough.dtype)
            near = rough <= bound[:, None]
            if not margin.max() < float(np.finfo(rough.dtype).max) * 1e-20:
                # Products may be too large for the type, which says nothing about the distance.
                near |= ~np.isfinite(rough)
        probe, row = np.nonzero(near)
        used, place = np.unique(row, return_inverse=True)
        exact = _exact_form(block[used].astype(np.float64), self.metric)
        distances = self._distances(exact, probe, place)
        kept = distances <= within[probe]
        return probe[kept], row[kept], distances[kept]

    def _rough(self, rows: Floats, kind: Any) -> tuple[Floats, Floats]:
        """Something that grows with the distance, and how wrong it may be, for each probe."""
        squares = np.einsum("ij,ij->i", rows, rows)
        smallest, largest = (1e-30, 1e30) if kind is np.float32 else (1e-280, 1e280)
        if self.metric == "cosine" and (squares.min() < smallest or squares.max() > largest):
            # Squares of very small and very large numbers are none; vectors of length one have no such components that
            # matter.
            kind, rows = np.float64, _exact_form(rows.astype(np.float64), self.metric)
            squares = np.ones(len(rows))
        products = -(self.working.astype(kind, copy=False) @ rows.T)
        roundings = 2 * (rows.shape[1] + 8) * float(np.finfo(kind).eps)
        least = rows.shape[1] * float(np.finfo(kind).tiny)
        if self.metric == "cosine":
            products /= np.sqrt(squares)
            return products, np.full(len(self), 2 * roundings + least)
        longest = float(np.sqrt(squares.max().astype(np.float64)))
        if self.metric == "l2":
            products += squares / 2
            return products, roundings * (longest * longest / 2 + self.lengths * longest) + least
        return products, roundings * (self.lengths * longest) + least

    def _limit(self, within: Floats) -> Floats:
        """A distance in terms of what `_rough` gives."""
        if self.metric == "l2":
            found: Floats = (within * within - self.lengths * self.lengths) / 2
            # The margin of `_rough` is relative to the rows; this is what the probe's own part may be wrong by.
            found += (within * within + self.lengths * self.lengths) * 1e-15
            return found
        return within - (1.0 - 1e-15) if self.metric == "cosine" else within

    def _distances(self, exact: Floats, probe: Indices, row: Indices) -> Floats:
        """The distances of pairs, by a formula that looks at their two vectors only."""
        found = np.empty(len(probe))
        step = max(1, _PAIR_VALUES // max(1, exact.shape[1]))
        with np.errstate(all="ignore"):
            for start in range(0, len(probe), step):
                a, b = self.matrix[probe[start : start + step]], exact[row[start : start + step]]
                if self.metric == "l2":
                    difference = a - b
                    found[start : start + step] = np.sqrt(np.add.reduce(difference * difference, axis=1))
                else:
                    products = np.add.reduce(a * b, axis=1)
                    found[start : start + step] = (
                        np.clip(1.0 - products, 0.0, 2.0) if self.metric == "cosine" else 0.0 - products
                    )
        return found


def _exact_form(matrix: Floats, metric: str) -> Floats:
    """The vectors as distances are computed from them: under cosine of length one."""
    if metric != "cosine" or not len(matrix):
        return matrix
    scaled = matrix / np.abs(matrix).max(axis=1, keepdims=True)
    found: Floats = scaled / np.sqrt(np.add.reduce(scaled * scaled, axis=1))[:, None]
    return found
