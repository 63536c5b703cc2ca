"""Pairing rows that differ in the last digits of their floats.

What is left of two multisets when equal rows have been taken away is sorted on both sides by the columns that are not
floats and then by the floats. Two rows that come together are equal if their other columns are, and each pair of floats
agrees within `TOLERANCE` of the larger one, or is the same (NaN, infinities, zeros of either sign).

`unpaired` does that in memory. `sorted_unpaired` does the same for rows that do not fit: each side is sorted by DuckDB,
which spills, by a hash of the other columns and the floats, and the two streams are read side by side. Rows of one
group are taken off in equal numbers, so that the places of rows in their groups agree, however long a group is; when
one side has none left, the rest of the other has no partner.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.scratch import scratch_parent
from headwater.kernels.arrays import Lanes

__all__ = ["TOLERANCE", "sorted_unpaired", "unpaired"]

TOLERANCE = 1e-9

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
_NULL = -1.2345678e-300
"""A number that nothing else has, in place of null."""


def unpaired(missing: pa.Table, extra: pa.Table, floats: list[str]) -> tuple[Places, Places]:
    """The positions of rows on either side that have no partner on the other."""
    plain = [n for n in missing.schema.names if n not in floats]
    rows = missing.num_rows
    both = pa.concat_tables([missing, extra.cast(missing.schema)])
    if plain:
        group = np.asarray(rowkey.row_codes(both.select(plain)).ids, dtype=np.int64)
    else:
        group = np.zeros(both.num_rows, dtype=np.int64)
    numbers = [numbers_of(both[name]) for name in floats]
    left, right = _sorted(group[:rows], [n[:rows] for n in numbers]), _sorted(group[rows:], [n[rows:] for n in numbers])
    places_left, places_right = _places(group[:rows][left], group[rows:][right])
    a, b = left[places_left], right[places_right] + rows
    ok = _all_close([(values[a], values[b]) for values in numbers], len(a))
    matched = np.zeros(both.num_rows, dtype=bool)
    matched[a[ok]] = matched[b[ok]] = True
    return np.flatnonzero(~matched[:rows]), np.flatnonzero(~matched[rows:])


def numbers_of(column: pa.ChunkedArray | pa.Array) -> Floats:
    """The values of floats of any width, with a number that nothing else has for null."""
    plain: Floats = column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(nulls, _NULL, plain)


def _sorted(group: Places, numbers: list[Floats]) -> Places:
    return np.lexsort((*reversed(numbers), group)).astype(np.int64)


def _places(left: Places, right: Places) -> tuple[Places, Places]:
    """The positions of the first of each group on both sides, the second, and so on, as far as both have one."""
    rank_left, rank_right = (np.arange(len(g)) - np.searchsorted(g, g) for g in (left, right))
    most = int(max(rank_left.max(initial=0), rank_right.max(initial=0))) + 1
    _, at_left, at_right = np.intersect1d(
        left * most + rank_left, right * most + rank_right, assume_unique=True, return_indices=True
    )
    return at_left, at_right


def _all_close(pairs: list[tuple[Floats, Floats]], length: int) -> npt.NDArray[np.bool_]:
    ok = np.ones(length, dtype=bool)
    for a, b in pairs:
        ok &= _close(a, b)
    return ok


def _close(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        near = np.abs(a - b) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b))
        found: npt.NDArray[np.bool_] = same | (near & np.isfinite(a) & np.isfinite(b))
        return found


# -- more than fits ----------------------------------------------------------------------------------------------------

Keys = Callable[[], Iterator[tuple[Lanes, list[Floats], Places]]]
"""The sort keys of one side, in pieces: lanes of the columns that are not floats, the floats,
and the number of each row.
"""

Sides = tuple[Places, Places]


def sorted_unpaired(left: Keys, right: Keys, floats: int, *, memory_bytes: int) -> Iterator[Sides]:
    """The numbers of rows on either side that have no partner on the other, in pieces.

    Gives what `unpaired` gives, with hashes of 128 bits in place of the columns that are not floats.
    """
    one, other = _Side(left, floats, memory_bytes), _Side(right, floats, memory_bytes)
    try:
        while one.fill() and other.fill():
            yield one.against(other)
        for number, side in enumerate((one, other)):
            while side.fill():
                rest, nothing = side.take(side.length), np.zeros(0, dtype=np.int64)
                yield (rest, nothing) if number == 0 else (nothing, rest)
    finally:
        one.close()
        other.close()


class _Side:
    """The sorted keys of one side, of which a window is in memory."""

    def __init__(self, keys: Keys, floats: int, memory_bytes: int) -> None:
        import duckdb

        self._folder = tempfile.TemporaryDirectory(dir=scratch_parent(), prefix="headwater-sorted-")
        spill = str(Path(self._folder.name) / "duckdb")
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{memory_bytes}B",
            "temp_directory": spill,
            "threads": 1,
            "python_enable_replacements": False,
        }
        names = ["a", "b", *(f"f{i}" for i in range(floats))]
        kinds = [pa.uint64(), pa.uint64(), *(pa.float64() for _ in range(floats)), pa.int64()]
        schema = pa.schema(list(zip([*names, "row"], kinds, strict=True)))
        batches = (_keys_batch(schema, *piece) for piece in keys())
        self._connection = duckdb.connect(":memory:", config=config)
        self._connection.register("keys", pa.RecordBatchReader.from_batches(schema, batches))
        sorted_ = self._connection.sql(f"SELECT * FROM keys ORDER BY {', '.join(names)}")
        self._batches = iter(sorted_.to_arrow_reader(65_536))
        self._columns: list[npt.NDArray[Any]] = []
        self.length = 0

    def fill(self) -> bool:
        """Whether there is a row; reads on where the window is empty."""
        while self.length == 0:
            batch = next(self._batches, None)
            if batch is None:
                return False
            self._columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            self.length = batch.num_rows
        return True

    def take(self, count: int) -> Places:
        """The numbers of the first rows of the window, which are gone from it then."""
        taken: Places = self._columns[-1][:count].astype(np.int64)
        self._columns = [column[count:] for column in self._columns]
        self.length -= count
        return taken

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()

    def _group(self, at: int) -> tuple[int, int]:
        return int(self._columns[0][at]), int(self._columns[1][at])

    def _before(self, group: tuple[int, int]) -> int:
        """How many rows of the window are in groups before this one."""
        a, b = self._columns[:2]
        low, high = (int(np.searchsorted(a, np.uint64(group[0]), side)) for side in ("left", "right"))
        return low + int(np.searchsorted(b[low:high], np.uint64(group[1])))

    def _in_first(self) -> int:
        """How many rows of the window are in the group of the first one."""
        same = (self._columns[0] == self._columns[0][0]) & (self._columns[1] == self._columns[1][0])
        return self.length if same.all() else int(np.argmin(same))

    def against(self, other: _Side) -> Sides:
        """Take off rows that can be paired now, and say which of them have no partner.

        Groups before the last one of both windows are whole. Of the last one, as many rows are taken as both sides
        have.
        """
        last = min(self._group(-1), other._group(-1))
        mine, theirs = self._before(last), other._before(last)
        if mine or theirs:
            groups = _numbered(*(np.concatenate([self._columns[i][:mine], other._columns[i][:theirs]]) for i in (0, 1)))
            a, b = _places(groups[:mine], groups[mine:])
        elif self._group(0) == other._group(0):
            mine = theirs = min(self._in_first(), other._in_first())
            a = b = np.arange(mine)
        else:
            is_mine = self._group(0) < other._group(0)
            mine, theirs = (self._in_first(), 0) if is_mine else (0, other._in_first())
            a = b = np.zeros(0, dtype=np.int64)
        pairs = [(x[a], y[b]) for x, y in zip(self._columns[2:-1], other._columns[2:-1], strict=True)]
        ok = _all_close(pairs, len(a))
        alone, alone_too = np.ones(mine, dtype=bool), np.ones(theirs, dtype=bool)
        alone[a[ok]] = alone_too[b[ok]] = False
        return self.take(mine)[alone], other.take(theirs)[alone_too]


def _numbered(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Places:
    """Numbers of pairs: equal where the pairs are, and rising as they do."""
    order = np.lexsort((b, a))
    new = np.ones(len(a), dtype=np.int64)
    new[1:] = (np.diff(a[order]) != 0) | (np.diff(b[order]) != 0)
    found = np.empty(len(a), dtype=np.int64)
    found[order] = np.cumsum(new)
    return found


def _keys_batch(schema: pa.Schema, lanes: Lanes, floats: list[Floats], rows: Places) -> pa.RecordBatch:
    hashes = (np.ascontiguousarray(lanes[:, 0]), np.ascontiguousarray(lanes[:, 1]))
    return pa.RecordBatch.from_arrays([pa.array(c) for c in (*hashes, *floats, rows)], schema=schema)
