"""Building a layer: a stream of rows becomes one record file for each part.

The first rows decide the layout of a base (`layout`); an overlay has that of its base. Rows go to parts by the hash of
their key, so that lookups know where to look and several tasks can each build a part.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.serving.dtypes import stored_type
from headwater.serving.keys import KeyBatch, KeyCodec
from headwater.serving.layout import KeyPart, Layout, choose_layout
from headwater.serving.origins import Origins
from headwater.serving.record_writer import RecordWriter, Written

__all__ = ["Shape", "build_layer", "layout_of", "new_seed", "stored_schema", "to_stored"]

_SAMPLE_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Shape:
    """What the files of a version have in common."""

    layout: Layout
    seed: int
    parts: int = 1
    order_by: str | None = None


def new_seed() -> int:
    """A seed that nobody knows beforehand."""
    return secrets.randbits(64)


def stored_schema(schema: pa.Schema, key: Sequence[str], where: str = "") -> pa.Schema:
    """The columns with the types that they are stored as, the key first; an error for a type that cannot be stored."""
    missing = [name for name in key if name not in schema.names]
    if missing:
        raise NotFoundError.column(missing[0], schema.names, where=where)
    names = [*key, *(n for n in schema.names if n not in key)]
    fields = [schema.field(n).with_type(stored_type(n, schema.field(n).type)) for n in names]
    return pa.schema([f.with_nullable(False) if f.name in key else f for f in fields])


def to_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with exactly the columns and types of a stored schema."""
    arrays = []
    for f in schema:
        array = batch.column(f.name)
        arrays.append(array if array.type == f.type else array.cast(f.type))
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def layout_of(schema: pa.Schema, key: Sequence[str], sample: Sequence[pa.RecordBatch], *, ordered: bool) -> Layout:
    """The layout that suits the first rows."""
    rows = sum(b.num_rows for b in sample)
    nulls = {n: sum(b.column(n).null_count for b in sample) / max(1, rows) for n in schema.names if n not in key}
    lengths = None
    codec = KeyCodec([KeyPart(n, schema.field(n).type) for n in key])
    if not codec.width and rows:
        batches = [codec.encode([b.column(n) for n in key]) for b in sample]
        lengths = np.concatenate([np.diff(one.offsets) for one in batches])
    return choose_layout(schema, key, null_shares=nulls, key_lengths=lengths, rows=rows, ordered=ordered)


def sampled(batches: Iterable[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """The first batches, and all of them."""
    rest, head, rows = iter(batches), [], 0
    for batch in rest:
        head.append(batch)
        rows += batch.num_rows
        if rows >= _SAMPLE_ROWS:
            break
    return head, itertools.chain(head, rest)


def build_layer(
    batches: Iterable[pa.RecordBatch],
    shape: Shape,
    path: Callable[[int], str],
    *,
    deleted: KeyBatch | None = None,
    where: str = "",
    advance: Callable[[int], Any] | None = None,
    origins: Callable[[], Origins] | None = None,
) -> list[Written]:
    """Write the rows, and ``deleted`` keys, to one file for each part, at ``path(part)``.

    ``origins`` is asked at the end for those of all rows, where there is one part.
    """
    assert origins is None or (shape.parts == 1 and deleted is None), "records are the rows in their order"
    writers: list[RecordWriter] = []
    try:
        for part in range(shape.parts):
            one = RecordWriter(path(part), shape.layout, shape.seed, order_by=shape.order_by, where=where)
            writers.append(one)
        for batch in batches:
            rows = to_stored(batch, shape.layout.schema)
            if shape.parts == 1:
                writers[0].append(rows)
            else:
                codec = KeyCodec(shape.layout.key)
                keys = codec.encode([rows.column(p.name) for p in shape.layout.key])
                for part, positions in split_by_part(keys, shape):
                    writers[part].append(rows.take(pa.array(positions)))
            if advance is not None:
                advance(batch.num_rows)
        if deleted is not None and len(deleted):
            for part, positions in split_by_part(deleted, shape):
                writers[part].delete(taken(deleted, positions))
        return [writer.finish(None if origins is None else origins()) for writer in writers]
    except BaseException:
        for writer in writers:
            writer.abandon()
        raise


def split_by_part(keys: KeyBatch, shape: Shape) -> Iterator[tuple[int, np.ndarray[Any, np.dtype[np.int64]]]]:
    """The positions of the keys of each part that has some."""
    from headwater.kernels.arrays import read_only
    from headwater.kernels.online_find import hash_keys, order_of_parts

    hashes = np.empty(len(keys), np.uint64)
    seed = shape.seed - (1 << 64) if shape.seed >= 1 << 63 else shape.seed
    hash_keys(read_only(keys.data), read_only(keys.offsets), seed, hashes)
    counts, order = np.zeros(shape.parts, np.int64), np.empty(len(keys), np.int64)
    order_of_parts(hashes, shape.parts, counts, order)
    begin = 0
    for part, count in enumerate(counts.tolist()):
        if count:
            yield part, order[begin : begin + count]
        begin += count


def taken(keys: KeyBatch, positions: np.ndarray[Any, np.dtype[np.int64]]) -> KeyBatch:
    """Some of the keys."""
    lengths = np.diff(keys.offsets)[positions]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    index = np.repeat(keys.offsets[:-1][positions] - ends[:-1], lengths) + np.arange(int(ends[-1]))
    nulls = None if keys.nulls is None else keys.nulls[positions]
    return KeyBatch(keys.data[index] if index.size else np.zeros(1, np.uint8), ends, nulls)
