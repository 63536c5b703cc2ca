"""Comparing a view with a recomputation: exactly, except that floats may differ in their last digits.

A circuit adds floats up exactly and rounds once. A query engine adds them in the order in which they come, so its own answer is not
the same from one run to the next. The rule is therefore: rows are compared as multisets, bit for bit. What is then left over is sorted
on both sides by the columns that are not floats and then by the floats, and two rows that come together are equal if their other columns
are, and each pair of floats agrees within `TOLERANCE` of the larger one, or is the same (NaN, infinities, zeros of either sign). Everything
that is not a float, decimals and dates and texts and floats inside of arrays and structs, has to be equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.change import ChangeBatch
from headwater.base.frontier import Frontier
from headwater.derived.contract import Verification

__all__ = ["TOLERANCE", "compare"]

TOLERANCE = 1e-9


def compare(frontier: Frontier, *, expected: pa.Table, actual: pa.Table) -> Verification:
    """Hold the rows of a view against those of a recomputation.

    >>> one, other = pa.table({"k": [1], "x": [0.1 + 0.2]}), pa.table({"k": [1], "x": [0.3]})
    >>> print(compare(Frontier(t=1), expected=one, actual=other))
    equal at t@1
    """
    found = Verification.compare(frontier, expected=expected, actual=actual)
    floats = [f.name for f in expected.schema if pa.types.is_floating(f.type)]
    if found.equal or not floats:
        return found
    missing, extra = found.missing.inserted(), found.extra.inserted()
    differs, too_many = _unmatched(missing, extra, floats)
    return Verification(
        frontier=frontier,
        missing=ChangeBatch.from_rows(missing.take(differs)).consolidate(),
        extra=ChangeBatch.from_rows(extra.take(too_many)).consolidate(),
    )


def _unmatched(missing: pa.Table, extra: pa.Table, floats: list[str]) -> tuple[pa.Array, pa.Array]:
    """The positions of rows on either side that have no partner on the other."""
    plain = [n for n in missing.schema.names if n not in floats]
    rows = missing.num_rows
    both = pa.concat_tables([missing, extra.cast(missing.schema)])
    if plain:
        group = np.asarray(rowkey.row_codes(both.select(plain)).ids, dtype=np.int64)
    else:
        group = np.zeros(both.num_rows, dtype=np.int64)
    numbers = [_numbers(both[name]) for name in floats]
    left, right = _sorted(group[:rows], [n[:rows] for n in numbers]), _sorted(group[rows:], [n[rows:] for n in numbers])
    places_left, places_right = _places(group[:rows][left], group[rows:][right])
    ok = np.ones(len(places_left), dtype=bool)
    a, b = left[places_left], right[places_right] + rows
    for values in numbers:
        ok &= _close(values[a], values[b])
    matched = np.zeros(both.num_rows, dtype=bool)
    matched[a[ok]] = matched[b[ok]] = True
    return pa.array(np.flatnonzero(~matched[:rows])), pa.array(np.flatnonzero(~matched[rows:]))


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """The values, with a number that nothing else has for null."""
    plain: npt.NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(nulls, -1.2345678e-300, plain)


def _sorted(group: npt.NDArray[np.int64], numbers: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.int64]:
    return np.lexsort((*reversed(numbers), group)).astype(np.int64)


def _places(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The positions of the first of each group on both sides, the second, and so on, as far as both have one."""
    rank_left, rank_right = (np.arange(len(g)) - np.searchsorted(g, g) for g in (left, right))
    most = int(max(rank_left.max(initial=0), rank_right.max(initial=0))) + 1
    _, at_left, at_right = np.intersect1d(
        left * most + rank_left, right * most + rank_right, assume_unique=True, return_indices=True
    )
    return at_left, at_right


def _close(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        near = np.abs(a - b) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b))
        found: npt.NDArray[np.bool_] = same | (near & np.isfinite(a) & np.isfinite(b))
        return found
