"""Pieces of sorted series, each with what is known of its columns around it.

The problem: what fills a gap is the last value before it and the first one after it, and a series, or a gap in one of
its columns, may be longer than memory. The idea: of all that lies before a piece only the last value of each column
matters, and of all behind it only the first. So sorted rows are cut into pieces, and where a series goes on over a cut,
a piece is given one more row for each column on either side: with that column's nearest value, at its time, and nothing
in the other columns. What lies before is known when a piece comes. What lies behind is not: it is collected on a first
pass over the rows (`Spool`), backwards over one line for each piece.

Invariants: rows of one series and time are in one piece, so that of several of them the last one is the one that is
known. What is held is a piece, not a series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.timeseries.node import Ordering
from headwater.timeseries.rows import key_starts
from headwater.timeseries.spooling import Spool
from headwater.timeseries.times import time_numbers

__all__ = ["Surrounded", "surrounded"]

PIECE_ROWS = 1 << 18

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Surrounded:
    """A table of which the rows from ``begin`` to ``end`` are the piece, and the others what is known around it.

    Attributes
    ----------
    starts : numpy array
        where each series begins in the table
    after : int or None
        the time of the last row before the piece, if its first series goes on from there
    """

    table: pa.Table
    begin: int
    end: int
    starts: Places
    after: int | None


@dataclass(frozen=True, slots=True)
class _Value:
    """What a column is known to be at a time."""

    number: int
    time: pa.ChunkedArray
    value: pa.ChunkedArray


_Around = dict[str, _Value]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Sorted rows, their series, and whether the first of these is the last one of the piece before."""

    table: pa.Table
    times: Places
    starts: Places
    goes_on: bool


def surrounded(
    chunks: Iterable[pa.Table],
    ordering: Ordering,
    columns: Sequence[str],
    *,
    ahead: bool,
    schema: pa.Schema,
    budget_bytes: int,
) -> Iterator[Surrounded]:
    """Sorted chunks as pieces with the nearest values of these columns; of those behind, if ``ahead``.

    >>> chunks = [pa.table({"t": [1, 2], "v": [7, None]}), pa.table({"t": [3, 4], "v": [None, 9]})]
    >>> schema = chunks[0].schema
    >>> for piece in surrounded(chunks, Ordering("t"), ["v"], ahead=True, schema=schema, budget_bytes=1 << 20):
    ...     print(piece.table.to_pydict(), piece.begin, piece.end, piece.after)
    {'t': [1, 4], 'v': [7, 9]} 0 1 None
    {'t': [1, 2, 3, 4], 'v': [7, None, None, 9]} 1 4 1
    """
    cut = _cut(chunks, ordering)
    if not ahead:
        yield from _with_back(_pieces(cut, ordering), ordering, columns, None)
        return
    with Spool(schema, budget_bytes=budget_bytes) as spool:
        heads = [
            (_first_known(piece, ordering, columns), piece.goes_on, len(piece.starts) == 1)
            for piece in _pieces(_kept(cut, spool), ordering)
        ]
        yield from _with_back(_pieces(spool, ordering), ordering, columns, _behind(heads))


def _kept(tables: Iterable[pa.Table], spool: Spool) -> Iterator[pa.Table]:
    for table in tables:
        spool.add(table)
        yield table


def _behind(heads: Sequence[tuple[_Around, bool, bool]]) -> list[_Around]:
    """For each piece the first values behind it in its last series."""
    found: list[_Around] = [{} for _ in heads]
    for at in range(len(heads) - 2, -1, -1):
        first, goes_on, is_one = heads[at + 1]
        if goes_on:
            found[at] = {**found[at + 1], **first} if is_one else first
    return found


def _with_back(
    pieces: Iterable[_Piece], ordering: Ordering, columns: Sequence[str], behind: Sequence[_Around] | None
) -> Iterator[Surrounded]:
    back: _Around = {}
    last = 0
    for number, piece in enumerate(pieces):
        before = back if piece.goes_on else {}
        after = behind[number] if behind is not None else {}
        head, tail = _extra(before, piece, ordering, 0), _extra(after, piece, ordering, piece.table.num_rows - 1)
        parts = [part for part in (head, piece.table, tail) if part is not None]
        table = pa.concat_tables(parts).combine_chunks()
        begin = 0 if head is None else head.num_rows
        starts = piece.starts + begin
        starts[0] = 0
        yield Surrounded(table, begin, begin + piece.table.num_rows, starts, last if piece.goes_on else None)
        known = _last_known(piece, ordering, columns)
        back = {**before, **known} if len(piece.starts) == 1 else known
        last = int(piece.times[-1])


def _cut(chunks: Iterable[pa.Table], ordering: Ordering) -> Iterator[pa.Table]:
    """The same rows in pieces that are not too large, and never cut between two rows of one series and time."""
    moment = (*ordering.by, ordering.time)
    held: pa.Table | None = None
    for chunk in chunks:
        for low in range(0, chunk.num_rows, PIECE_ROWS):
            piece = chunk.slice(low, PIECE_ROWS)
            if held is None:
                held = piece
                continue
            last = int(key_starts(held, moment)[-1])
            if last:
                yield held.slice(0, last).combine_chunks()
            held = pa.concat_tables([held.slice(last), piece]).combine_chunks()
    if held is not None:
        yield held.combine_chunks()


def _pieces(tables: Iterable[pa.Table], ordering: Ordering) -> Iterator[_Piece]:
    before: pa.Table | None = None
    for table in tables:
        times, _ = time_numbers(table.column(ordering.time))
        starts = key_starts(table, ordering.by)
        edge = table.slice(0, 1).select([*ordering.by, ordering.time])
        goes_on = before is not None and _same_series(before, edge, ordering)
        yield _Piece(table, times, starts, goes_on)
        before = table.slice(table.num_rows - 1).select([*ordering.by, ordering.time])


def _same_series(before: pa.Table, edge: pa.Table, ordering: Ordering) -> bool:
    return len(key_starts(pa.concat_tables([before, edge]), ordering.by)) == 1


def _last_known(piece: _Piece, ordering: Ordering, columns: Sequence[str]) -> _Around:
    """The last value of each column in the piece's last series."""
    low = int(piece.starts[-1])
    found: _Around = {}
    for name in columns:
        there = np.flatnonzero(np.asarray(pc.is_valid(piece.table.column(name).slice(low))))
        if len(there):
            found[name] = _value(piece, ordering, name, low + int(there[-1]))
    return found


def _first_known(piece: _Piece, ordering: Ordering, columns: Sequence[str]) -> _Around:
    """The first value of each column in the piece's first series; of several of one time, the last."""
    high = int(piece.starts[1]) if len(piece.starts) > 1 else piece.table.num_rows
    found: _Around = {}
    for name in columns:
        there = np.flatnonzero(np.asarray(pc.is_valid(piece.table.column(name).slice(0, high))))
        if len(there):
            at_once = there[piece.times[there] == piece.times[there[0]]]
            found[name] = _value(piece, ordering, name, int(at_once[-1]))
    return found


def _value(piece: _Piece, ordering: Ordering, name: str, row: int) -> _Value:
    # Taken, and not sliced: a slice would hold the whole piece.
    at = pa.array([row])
    return _Value(int(piece.times[row]), piece.table.column(ordering.time).take(at), piece.table.column(name).take(at))


def _extra(around: _Around, piece: _Piece, ordering: Ordering, row: int) -> pa.Table | None:
    """A row for each of these values, by time, in the series of a row."""
    if not around:
        return None
    known = sorted(around.items(), key=lambda item: item[1].number)
    count = len(known)
    columns: list[pa.ChunkedArray | pa.Array] = []
    for field in piece.table.schema:
        if field.name == ordering.time:
            columns.append(pa.chunked_array([c for _, v in known for c in v.time.chunks], field.type))
        elif field.name in ordering.by:
            columns.append(piece.table.column(field.name).take(pa.array([row] * count)))
        elif field.name in around:
            at = next(place for place, (name, _) in enumerate(known) if name == field.name)
            parts = [pa.nulls(at, field.type), *around[field.name].value.chunks, pa.nulls(count - at - 1, field.type)]
            columns.append(pa.chunked_array(parts, field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.Table.from_arrays(columns, schema=piece.table.schema)
