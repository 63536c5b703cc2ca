"""From the changes of a source to those of an online table: which rows to write, and which keys to delete.

The change of a source is a set of rows with weights. For a table with one row per key that is simple: a key with a row
that came gets this row, and a key whose row only went is deleted. What contradicts that, a second row for a key, is
refused before anything is written.

With an order column a source may have many rows per key, and the one with the largest value counts. A row that comes
counts if it is larger than the one that is served. Only where the served row itself goes, the next one has to be looked
for among all rows of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.change import WEIGHT
from headwater.base.errors import InputError
from headwater.lake.changes import FileChange, read_change
from headwater.lake.deletion_vectors import positions
from headwater.lake.file_changes import vector_difference
from headwater.lake.snapshot import Snapshot
from headwater.serving.building import to_stored
from headwater.serving.keys import KeyBatch, KeyCodec
from headwater.serving.layers import Layers
from headwater.serving.record_writer import order_words

__all__ = ["Contradiction", "TableChange", "as_binary", "of_keys", "ordered_change", "plain_change", "went_and_came"]

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Contradiction(Exception):
    """The changes do not fit what is served: it has to be built from scratch."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """Rows to write, and keys to delete; ``added`` is by how many rows the table grows."""

    rows: pa.RecordBatch
    deleted: KeyBatch
    added: int

    @property
    def count(self) -> int:
        """How many rows of the table change."""
        return int(self.rows.num_rows) + len(self.deleted)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The rows that came and those that went, with their keys, as bytes."""

    codec: KeyCodec
    came: pa.RecordBatch
    came_keys: pa.Array
    went: pa.RecordBatch
    went_keys: pa.Array
    weights: Numbers


def _sides(batches: Iterable[pa.RecordBatch], schema: pa.Schema, codec: KeyCodec, where: str) -> _Sides:
    pieces = list(batches)
    schema = pa.schema([f.with_nullable(True) for f in schema])
    weights = [b.column(WEIGHT) for b in pieces]
    rows = pa.Table.from_batches([to_stored(b, schema) for b in pieces], schema).combine_chunks()
    table = rows.to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], schema)
    weight = pa.concat_arrays(weights).to_numpy() if weights else np.zeros(0, np.int64)
    keys = codec.encode([table.column(p.name) for p in codec.parts])
    if keys.nulls is not None:
        raise InputError.null_keys([p.name for p in codec.parts], where)
    names = as_binary(keys)
    if weight.size and weight.min() > 0:  # as after an append
        return _Sides(codec, table, names, table.slice(0, 0), names.slice(0, 0), weight)
    plus = pa.array(weight > 0)
    minus = pa.array(weight < 0)
    return _Sides(
        codec, table.filter(plus), names.filter(plus), table.filter(minus), names.filter(minus), weight[weight > 0]
    )


def went_and_came(
    base: Snapshot,
    files: Sequence[FileChange],
    names: Sequence[str],
    key: Sequence[str],
    layers: Layers,
    *,
    one_commit: bool,
) -> _Read | None:
    """The rows that came, and of those that went only the keys; None where it takes whole rows to tell them apart.

    Where rows only came in new files and went by deletion vectors, none is in both: a key that is, has a new row. The
    same holds for what the change data feed says of one commit: each row of a key is in it once before and once after.
    """
    if one_commit and files and all(f.feed for f in files):
        rows = [batch for change in files for batch in read_change(base, change, names)]
        signs = [batch.column(WEIGHT).to_numpy() > 0 for batch in rows]
        came = [batch.filter(pa.array(sign)) for batch, sign in zip(rows, signs, strict=True)]
        went = [batch.select([*key, WEIGHT]).filter(pa.array(~sign)) for batch, sign in zip(rows, signs, strict=True)]
        return _Read(came, went)
    if not all(f.metadata is None and not f.feed and (f.before is None or f.after is not None) for f in files):
        return None
    came, went = [], []
    for change in files:
        if change.before is None:
            came += read_change(base, change, names)
            continue
        assert change.after is not None, "it got another vector"
        died, back = vector_difference(base, change.before, change.after)
        if back:
            return None  # a vector gave rows back
        if died:
            went += _keys_of(base, change, positions(died), key, layers)
    return _Read(came, went)


def _keys_of(
    base: Snapshot, change: FileChange, died: Numbers, key: Sequence[str], layers: Layers
) -> Iterable[pa.RecordBatch]:
    """The keys of rows of a file that died: from the table's own base, if it was made of them, else from the file."""
    assert change.after is not None
    columns = layers.keys_of_rows(change.after.path, died)
    if columns is None:
        return read_change(base, change, key)
    return [pa.RecordBatch.from_arrays([*columns, pa.array(np.full(len(died), -1))], [*key, WEIGHT])]


@dataclass(frozen=True, slots=True)
class _Read:
    """Batches of rows that came, and of keys that went."""

    came: list[pa.RecordBatch]
    went: list[pa.RecordBatch]

    @property
    def rows(self) -> int:
        return sum(b.num_rows for b in (*self.came, *self.went))

    def sides(self, schema: pa.Schema, codec: KeyCodec, where: str) -> _Sides:
        keys = pa.schema([schema.field(p.name) for p in codec.parts])
        came = _sides(self.came, schema, codec, where)
        if self.came and not self.went:
            return came
        went = _sides(self.went, keys, codec, where)
        return _Sides(codec, came.came, came.came_keys, went.went, went.went_keys, came.weights)


def plain_change(read: _Read | Iterable[pa.RecordBatch], schema: pa.Schema, layers: Layers, where: str) -> TableChange:
    """The change of a table whose source has one row per key."""
    codec = layers.codec
    sides = read.sides(schema, codec, where) if isinstance(read, _Read) else _sides(read, schema, codec, where)
    _check_once(sides, where)
    if len(sides.went_keys) and len(pc.unique(sides.went_keys)) != len(sides.went_keys):
        raise Contradiction("a key lost more rows than it had")
    came = layers.find(_as_keys(sides.came_keys)).records != 0
    if not len(sides.went_keys):  # as after an append
        _check_new(came, sides, where)
        return TableChange(sides.came, _as_keys(sides.went_keys), len(came))
    replaces = pc.is_in(sides.came_keys, sides.went_keys).to_numpy(zero_copy_only=False)
    _check_new(came & ~replaces, sides, where)
    # An update has the same keys on both sides, often in the same order.
    same = sides.went_keys.equals(sides.came_keys)
    went = came if same else layers.find(_as_keys(sides.went_keys)).records != 0
    if not went.all() or (replaces & ~came).any():
        raise Contradiction("rows went that it never had")
    gone = pc.invert(pc.is_in(sides.went_keys, sides.came_keys))
    deleted = _as_keys(sides.went_keys.filter(gone))
    return TableChange(sides.came, deleted, int((~replaces).sum()) - len(deleted))


def _check_new(twice: np.ndarray[Any, np.dtype[np.bool_]], sides: _Sides, where: str) -> None:
    """Raise if a key that came, and whose row did not go, has a row."""
    if twice.any():
        position = int(np.flatnonzero(twice)[0])
        shown = sides.codec.shown(_as_keys(sides.came_keys.slice(position, 1)), 0)
        raise InputError.duplicate_keys(int(twice.sum()), shown, where)


def _check_once(sides: _Sides, where: str) -> None:
    """Raise if a row came more than once, or two rows with one key."""
    if len(pc.unique(sides.came_keys)) == len(sides.came_keys) and not (sides.weights > 1).any():
        return
    counted = pc.value_counts(sides.came_keys)
    often = counted.filter(pc.greater(counted.field("counts"), 1))
    multiple = sides.came_keys.filter(pa.array(sides.weights > 1))
    for found in (often.field("values"), multiple):
        if len(found):
            raise InputError.duplicate_keys(len(found), sides.codec.shown(_as_keys(found.slice(0, 1)), 0), where)


def ordered_change(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    layers: Layers,
    order_by: str,
    where: str,
    search: Callable[[], Iterator[pa.RecordBatch]],
) -> TableChange:
    """The change of a table whose row for a key is that with the largest ``order_by``.

    ``search`` gives all rows of the source as they are now.
    """
    codec = layers.codec
    sides = _sides(batches, schema, codec, where)
    keys = pc.unique(pa.concat_arrays([sides.came_keys, sides.went_keys]))
    served = layers.find(_as_keys(keys))
    had = served.records != 0
    words = _served_words(layers, served.records)
    position = _positions(keys)
    gone = np.zeros(len(keys), bool)
    went = position(sides.went_keys)
    went_words = order_words(sides.went.column(order_by), order_by, where)
    gone[went[had[went] & (went_words >= words[went])]] = True
    candidates, candidate_keys, times = sides.came, sides.came_keys, sides.weights
    if gone.any():  # what is served went: look at all rows of these keys
        lost = keys.filter(pa.array(gone))
        rest = pc.invert(pc.is_in(candidate_keys, lost))
        found = [candidates.filter(rest)]
        found += [rows for rows in (of_keys(to_stored(b, schema), codec, lost) for b in search()) if rows.num_rows]
        table = pa.Table.from_batches(found, found[0].schema).combine_chunks()
        candidates = table.to_batches()[0] if table.num_rows else candidates.slice(0, 0)
        candidate_keys = as_binary(codec.encode([candidates.column(p.name) for p in codec.parts]))
        times = np.ones(len(candidate_keys), np.int64)
        times[: found[0].num_rows] = sides.weights[rest.to_numpy(zero_copy_only=False)]
    mine = position(candidate_keys)
    values = order_words(candidates.column(order_by), order_by, where)
    best = np.full(len(keys), np.iinfo(np.int64).min)
    np.maximum.at(best, mine, values)
    floor = np.where(had & ~gone, words, np.iinfo(np.int64).min)
    top = (values == best[mine]) & (values >= floor[mine])
    ties = np.bincount(mine[top], weights=times[top], minlength=len(keys)) + (had & ~gone & (best == words))
    if (ties > 1).any():
        at = int(np.flatnonzero(ties > 1)[0])
        shown = codec.shown(_as_keys(keys.slice(at, 1)), 0)
        raise InputError.duplicate_keys(int((ties > 1).sum()), shown, where, ordered=order_by)
    rows = candidates.filter(pa.array(top))
    written = np.zeros(len(keys), bool)
    written[mine[top]] = True
    deleted = _as_keys(keys.filter(pa.array(gone & ~written)))
    return TableChange(rows, deleted, int((written & ~had).sum()) - len(deleted))


def _served_words(layers: Layers, records: Numbers) -> Numbers:
    """The order words of records; the least number where there is none."""
    from headwater.kernels.online_gather import gather_columns

    out, counts = np.zeros(max(8, 8 * len(records)), np.uint8), np.zeros(1, np.int64)
    validity = np.zeros(len(records) // 8 + 8, np.uint8)
    buffer = np.concatenate([out, validity])
    least = np.iinfo(np.int64).min
    columns = np.array([[0, layers.layout.order_word, 8, -1, -1, len(out), 0, 0, least, 0]], np.int64)
    none = np.zeros(0, np.uint8)
    none.flags.writeable = False
    layout = layers.layout
    gather_columns(
        records,
        np.zeros(len(records), np.int64),
        layers.table,
        columns,
        layout.nulls,
        layout.null_bytes,
        none,
        buffer,
        counts,
    )
    return buffer[: 8 * len(records)].view(np.int64)


def of_keys(rows: pa.RecordBatch, codec: KeyCodec, wanted: pa.Array) -> pa.RecordBatch:
    """The rows of some keys."""
    keys = as_binary(codec.encode([rows.column(p.name) for p in codec.parts]))
    return rows.filter(pc.is_in(keys, wanted))


def _positions(keys: pa.Array) -> Callable[[pa.Array], Numbers]:
    def position(some: pa.Array) -> Numbers:
        found: Numbers = pc.index_in(some, keys).to_numpy(zero_copy_only=False).astype(np.int64)
        return found

    return position


def as_binary(keys: KeyBatch) -> pa.Array:
    """Keys as an array of their bytes."""
    offsets = pa.py_buffer(keys.offsets.astype(np.int64))
    return pa.Array.from_buffers(
        pa.large_binary(), len(keys), [None, offsets, pa.py_buffer(np.ascontiguousarray(keys.data))]
    )


def _as_keys(array: pa.Array) -> KeyBatch:
    """The inverse."""
    if not len(array):
        return KeyBatch(np.zeros(1, np.uint8), np.zeros(1, np.int64))
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], np.int64, len(array) + 1, 8 * array.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(buffers[2], np.uint8, last - first, first) if last > first else np.zeros(1, np.uint8)
    return KeyBatch(data, offsets - first)
