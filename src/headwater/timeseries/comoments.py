"""Sums of products of many columns in one pass: what Gramians, covariances and correlations are made of.

For columns i and j the rows count in which both have a value, as in Spark's ``covar_samp`` and ``corr``. Of those rows
are kept: their number N, the sum S of column i's values, the sum Q of their squares and the sum G of the products.
Without nulls N, S and Q do not depend on j, and a block of rows is one product of matrices.

Sums of squares lose digits where values are large and close together, so values are taken relative to a *centre*: for
each column a value of its own that is near the mean of the first rows. Sketches with other centres are moved to the
first one's (which is exact algebra). The last digits depend on how rows are cut, as with all sums of doubles.

A value that is infinite or NaN makes NaN of every pair that counts its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.timeseries.frames import doubles_of

__all__ = ["COMOMENTS_SCHEMA", "Comoments", "matrix_blocks"]

Matrix = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

COMOMENTS_SCHEMA = pa.schema(
    [
        ("column", pa.int32()),
        ("centre", pa.float64()),
        ("number", pa.large_list(pa.float64())),
        ("sum", pa.large_list(pa.float64())),
        ("squares", pa.large_list(pa.float64())),
        ("products", pa.large_list(pa.float64())),
        ("broken", pa.large_list(pa.float64())),
    ]
)
_BLOCK_VALUES = 1 << 20
_FIRST_ROWS = 1024


def matrix_blocks(rows: pa.Table) -> Iterator[tuple[Matrix, Flags | None]]:
    """The values of a table in blocks of rows, and where there are some, if not everywhere; a missing one is 0."""
    step = max(256, _BLOCK_VALUES // max(1, rows.num_columns))
    for start in range(0, rows.num_rows, step):
        block = rows.slice(start, step)
        values = np.empty((block.num_rows, block.num_columns), order="F")
        there: Flags | None = None
        for i, column in enumerate(block.columns):
            if column.null_count:
                if there is None:
                    there = np.ones(values.shape, np.bool_, order="F")
                there[:, i] = np.asarray(column.is_valid())
            values[:, i] = doubles_of(column)
        yield values, there


@dataclass(slots=True)
class Comoments:
    """What is known of the rows so far; N, S and Q have one column where no value was missing yet."""

    centre: Matrix
    number: Matrix
    sums: Matrix
    squares: Matrix
    products: Matrix
    broken: Matrix
    centred: bool
    empty: bool = True

    @classmethod
    def of(cls, columns: int, *, centred: bool) -> Comoments:
        """Of no rows; without a centre if it is the products themselves that are wanted."""
        one, all_ = (columns, 1), (columns, columns)
        return cls(
            np.zeros(columns),
            np.zeros(one),
            np.zeros(one),
            np.zeros(one),
            np.zeros(all_),
            np.zeros((columns, 0)),
            centred,
        )

    def add(self, values: Matrix, there: Flags | None) -> None:
        """More rows. The values are overwritten."""
        if not len(values):
            return
        if self.empty and self.centred:
            first = slice(0, _FIRST_ROWS)
            self.centre = _near_mean(values[first], None if there is None else there[first])
        self.empty = False
        values -= self.centre
        if there is not None:
            values[~there] = 0.0
            self._pairwise()
        with np.errstate(all="ignore"):
            products = values.T @ values
        if not np.isfinite(np.diag(products)).all():
            broken = ~np.isfinite(values)
            values[broken] = 0.0
            present = np.ones(values.shape) if there is None else there.astype(np.float64)
            met = broken.astype(np.float64).T @ present
            self._breaking(met + met.T)
            products = values.T @ values
        self.products += products
        if self.number.shape[1] == 1:
            self.number += len(values)
            self.sums[:, 0] += values.sum(axis=0)
            self.squares[:, 0] = np.diag(self.products)
        else:
            present = np.ones(values.shape) if there is None else there.astype(np.float64)
            self.number += present.T @ present
            self.sums += values.T @ present
            self.squares += (values * values).T @ present

    def merge(self, other: Comoments) -> None:
        """Take in what is known of other rows."""
        if other.empty:
            return
        if self.empty:
            self.centre = other.centre.copy()
        self.empty = False
        if other.number.shape[1] > 1 or self.number.shape[1] > 1:
            self._pairwise()
            other._pairwise()
        if other.broken.size:
            self._breaking(other.broken)
        by = (other.centre - self.centre)[:, None]
        n, s = other.number, other.sums
        wide_n, wide_s = np.broadcast_to(n, self.products.shape), np.broadcast_to(s, self.products.shape)
        self.products += other.products + by.T * wide_s + by * wide_s.T + by * by.T * wide_n
        self.squares += other.squares + 2 * by * s + by * by * n
        self.sums += s + by * n
        self.number += n

    def gramian(self) -> Matrix:
        """The sums of products."""
        return self._or_nan(self.products.copy())

    def covariance(self, ddof: int) -> tuple[Matrix, Flags]:
        """Covariances, and where there are enough rows for one."""
        n = np.broadcast_to(self.number, self.products.shape)
        enough = n > ddof
        with np.errstate(all="ignore"):
            found = self._about_means() / (n - ddof)
        return self._or_nan(found), enough

    def correlation(self) -> tuple[Matrix, Flags]:
        """Correlations, and where there are enough rows for one; NaN where a column has one value only."""
        n = np.broadcast_to(self.number, self.products.shape)
        enough = n > 1
        with np.errstate(all="ignore"):
            spread = np.maximum(np.broadcast_to(self.squares - self.sums * self.sums / self.number, n.shape), 0.0)
            found = self._about_means() / np.sqrt(spread * spread.T)
        return self._or_nan(found), enough

    def to_arrow(self) -> pa.Table:
        """As rows, one for each column."""
        lists = [_lists(m) for m in (self.number, self.sums, self.squares, self.products, self.broken)]
        kept = 0 if self.empty else len(self.centre)
        columns = [pa.array(np.arange(len(self.centre), dtype=np.int32)), pa.array(self.centre), *lists]
        return pa.Table.from_arrays(columns, schema=COMOMENTS_SCHEMA).slice(0, kept)

    @classmethod
    def from_arrow(cls, table: pa.Table, columns: int, *, centred: bool) -> Comoments:
        """What `to_arrow` gave; of no rows, if there are none."""
        if not table.num_rows:
            return cls.of(columns, centred=centred)
        order = np.argsort(np.asarray(table.column("column")))
        table = table.take(pa.array(order))
        number, sums, squares, products, broken = (_matrix(table.column(n), columns) for n in table.column_names[2:])
        return cls(np.array(table.column("centre")), number, sums, squares, products, broken, centred, empty=False)

    def _about_means(self) -> Matrix:
        sums = np.broadcast_to(self.sums, self.products.shape)
        found: Matrix = self.products - sums * sums.T / self.number
        return found

    def _pairwise(self) -> None:
        if self.number.shape[1] == 1 and len(self.centre) > 1:
            self.number, self.sums, self.squares = (
                np.repeat(m, len(self.centre), axis=1) for m in (self.number, self.sums, self.squares)
            )

    def _breaking(self, met: Matrix) -> None:
        self.broken = met + self.broken if self.broken.size else met.copy()

    def _or_nan(self, found: Matrix) -> Matrix:
        if self.broken.size:
            found[self.broken > 0] = np.nan
        return found


def _near_mean(values: Matrix, there: Flags | None) -> Matrix:
    """For each column the value nearest to the mean: of a column that is always the same, that value exactly."""
    usable = np.isfinite(values) if there is None else np.isfinite(values) & there
    with np.errstate(all="ignore"):
        means = np.where(usable, values, 0.0).sum(axis=0) / usable.sum(axis=0)
        distances = np.where(usable, np.abs(values - means), np.inf)
    nearest = values[np.argmin(distances, axis=0), np.arange(values.shape[1])]
    return np.where(usable.any(axis=0), nearest, 0.0)


def _lists(matrix: Matrix) -> pa.LargeListArray:
    offsets = np.arange(matrix.shape[0] + 1, dtype=np.int64) * matrix.shape[1]
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(matrix).ravel()))


def _matrix(column: pa.ChunkedArray, rows: int) -> Matrix:
    flat = np.concatenate([np.empty(0), *(np.asarray(c.flatten()) for c in column.chunks)])
    return flat.reshape(rows, -1)
