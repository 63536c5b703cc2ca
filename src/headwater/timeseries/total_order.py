"""Ties: rows of a series that nothing puts in order, and the error that says so.

An operator that goes from row to row gives other answers when two rows of the same time change places. The order in
which rows come to a task is an accident, so such an answer would be one too. Rows that agree in series, time and
tiebreak are harmless only where they are equal in everything that is read or handed on; all others are refused, with
the series and the time.

The check looks for equal neighbours in the order columns, which are rare, and compares only those, a column at a time:
numbers by Spark's equality (NaN is itself, -0.0 is 0.0), nested values part by part. No row is handled alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.timeseries.node import Ordering

__all__ = ["check_total", "checked", "unequal_pairs"]

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def check_total(table: pa.Table, ordering: Ordering, columns: Sequence[str] | None = None) -> None:
    """Refuse a sorted table in which rows that nothing puts in order differ in one of these columns (in any, if None).

    >>> rows = pa.table({"s": ["a", "a"], "t": [1, 1], "v": [5, 6], "note": ["x", "x"]})
    >>> check_total(rows, Ordering("t", ("s",)), ["note"])
    >>> check_total(rows, Ordering("t", ("s",)), ["v"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1021]: two rows at 1 differ in `v`, so the result would depend on ...
      where: s = 'a'
      hint: ...
    """
    if table.num_rows < 2:
        return
    # Equal times are rare: all other columns are looked at only there.
    later = _repeated(table.column(ordering.time))
    for name in (*ordering.tiebreak, *ordering.by):
        if not len(later):
            return
        later = later[~unequal_pairs(table.column(name), later - 1, later)]
    known = set(ordering.columns)
    for name in table.column_names if columns is None else columns:
        if len(later) and name not in known:
            differs = unequal_pairs(table.column(name), later - 1, later)
            if differs.any():
                raise _refused(table, ordering, name, int(later[np.argmax(differs)]))


def _repeated(times: pa.ChunkedArray) -> Indices:
    """The rows that have the time of the row before."""
    same = pc.equal(times.slice(1), times.slice(0, len(times) - 1))
    if times.null_count:
        gone = pc.is_null(times)
        same = pc.or_(same.fill_null(False), pc.and_(gone.slice(1), gone.slice(0, len(times) - 1)))
    return np.flatnonzero(np.asarray(same)) + 1


def checked(chunks: Iterable[pa.Table], ordering: Ordering, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The same sorted chunks, of which each is checked together with the last row of the one before.

    >>> chunks = [pa.table({"t": [1, 2], "v": [1, 2]}), pa.table({"t": [2, 3], "v": [2, 3]})]
    >>> [c.num_rows for c in checked(chunks, Ordering("t"), ["v"])]
    [2, 2]
    """
    before: pa.Table | None = None
    names = None if columns is None else list(dict.fromkeys((*ordering.columns, *columns)))
    for chunk in chunks:
        if not chunk.num_rows:
            continue
        seen = chunk if names is None else chunk.select(names)
        check_total(seen, ordering, columns)
        if before is not None:
            check_total(pa.concat_tables([before, seen.slice(0, 1)]), ordering, columns)
        before = seen.slice(seen.num_rows - 1)
        yield chunk


def unequal_pairs(column: pa.ChunkedArray | pa.Array, left: Indices, right: Indices) -> Flags:
    """For each pair of places whether their values differ; null is equal to null.

    >>> found = pa.array([[1.0, None], [1.0, None], [float("nan")], None])
    >>> unequal_pairs(found, np.array([0, 1, 2, 3]), np.array([1, 2, 2, 2])).tolist()
    [False, True, False, True]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.take(pa.array(np.concatenate((left, right)))).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        left, right = np.arange(len(left)), np.arange(len(left), 2 * len(left))
    return _unequal(column, left, right)


def _unequal(values: pa.Array, left: Indices, right: Indices) -> Flags:
    if not len(left):
        return np.zeros(0, np.bool_)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    kind = values.type
    if pa.types.is_null(kind):
        return np.zeros(len(left), np.bool_)
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    there = np.asarray(values.is_valid())
    differs: Flags = there[left] != there[right]
    both = np.flatnonzero(there[left] & there[right])
    left, right = left[both], right[both]
    if pa.types.is_struct(kind):
        found = np.zeros(len(both), np.bool_)
        for part in values.flatten():
            found |= _unequal(part, left, right)
        differs[both] = found
    elif pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        steps = np.arange(size)
        inner = values.values
        begin = values.offset * size
        pairs = [(at[:, None] * size + steps + begin).ravel() for at in (left, right)]
        found = _unequal(inner, *pairs)
        differs[both] = found.reshape(-1, size).any(axis=1) if size else False
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        differs[both] = _unequal_lists(values, left, right)
    elif pa.types.is_floating(kind):
        numbers = np.asarray(values.cast(pa.float64()).fill_null(0.0))
        a, b = numbers[left], numbers[right]
        differs[both] = (a != b) & ~(np.isnan(a) & np.isnan(b))
    else:
        a, b = values.take(pa.array(left)), values.take(pa.array(right))
        differs[both] = np.asarray(pc.not_equal(a, b).fill_null(False))
    return differs


def _unequal_lists(values: pa.Array, left: Indices, right: Indices) -> Flags:
    wide = np.int64 if pa.types.is_large_list(values.type) else np.int32
    offsets = np.frombuffer(values.buffers()[1], wide, len(values) + 1, values.offset * wide().itemsize).astype(
        np.int64
    )
    lengths = np.diff(offsets)
    differs: Flags = lengths[left] != lengths[right]
    same = np.flatnonzero(~differs & (lengths[left] > 0))
    counts = lengths[left[same]]
    which = np.repeat(np.arange(len(same)), counts)
    within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    inner = values.values if not pa.types.is_map(values.type) else _entries(values)
    found = _unequal(inner, offsets[left[same]][which] + within, offsets[right[same]][which] + within)
    differs[same] = np.bincount(which, found, len(same)) > 0
    return differs


def _entries(values: pa.MapArray) -> pa.Array:
    return pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])


def _refused(table: pa.Table, ordering: Ordering, column: str, row: int) -> InputError:
    def shown(name: str) -> Any:
        return table.column(name)[row].as_py()

    series = ", ".join(f"{name} = {shown(name)!r}" for name in ordering.by) or "the series"
    time = ", ".join(str(shown(name)) for name in (ordering.time, *ordering.tiebreak))
    return InputError.ambiguous_order(series, time, column)
