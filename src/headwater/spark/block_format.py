"""Blocks: many rows as one value of a Spark column.

A block is one Arrow record batch in IPC form without its schema, which both sides know: the message (continuation,
metadata, body) as it is, or in an LZ4 frame. Its ``size`` stands beside it, so that the message is written once, to
where it stays. Where the schema that both know has dictionaries (`coded`), a block is an IPC stream: the dictionaries
have to come along. A column that repeats itself too little for one comes as it is, and gets its dictionary where it is
read.

Spark compresses what it shuffles, so blocks are only compressed where a cluster's is told not to. Messages are
multiples of 8 bytes long, so that in an Arrow column of blocks each begins at a multiple of 8 and its numbers can be
read in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Block", "coded", "decode", "encode", "plain"]

_CODEC = "lz4"


class Block(NamedTuple):
    """Rows in one piece of memory."""

    size: int
    """0 if the message is as it is, else how long it is when the frame is unpacked."""
    data: pa.Buffer


def coded(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """The schema with those of these columns that hold texts as dictionaries.

    >>> coded(pa.schema([("k", pa.string()), ("n", pa.int64())]), ["k", "n"]).types
    [DictionaryType(dictionary<values=string, indices=int32, ordered=0>), DataType(int64)]
    """
    for name in names:
        at = schema.get_field_index(name)
        if pa.types.is_string(schema.field(at).type):
            schema = schema.set(at, schema.field(at).with_type(pa.dictionary(pa.int32(), pa.string())))
    return schema


def plain(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with columns of these types: what is a dictionary becomes its values.

    >>> rows = pa.table({"k": pa.array(["a", "a"]).dictionary_encode()})
    >>> plain(rows, pa.schema([("k", pa.string())])).schema.types
    [DataType(string)]
    """
    return table if table.schema.equals(schema) else table.cast(schema)


def encode(table: pa.Table, *, compress: bool = False, described: bool = False) -> Block:
    """A table as a block; ``described`` if the schema that is known on the other side has dictionaries.

    >>> rows = pa.table({"a": [1, 2], "b": ["x", None]})
    >>> decode(encode(rows, compress=True), rows.schema).equals(rows)
    True
    """
    batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
    if len(batches) > 1:  # texts of more than 2 GiB
        raise pa.ArrowCapacityError("a block is too large")
    message = _stream(batch) if described else batch.serialize()
    return Block(message.size, pa.compress(message, _CODEC)) if compress else Block(0, message)


def decode(block: Block, schema: pa.Schema) -> pa.Table:
    """The rows of a block; they refer to its memory."""
    message = pa.decompress(block.data, block.size, _CODEC) if block.size else block.data
    if not any(pa.types.is_dictionary(kind) for kind in schema.types):
        return pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])
    with pa.ipc.open_stream(message) as reader:
        batch = reader.read_next_batch()
    pairs = zip(batch.columns, schema.types, strict=True)
    columns = [c if c.type == kind else pc.dictionary_encode(c).cast(kind) for c, kind in pairs]
    return pa.Table.from_arrays(columns, schema=schema)


def _stream(batch: pa.RecordBatch) -> pa.Buffer:
    length = pa.MockOutputStream()
    _write(batch, length)
    room = pa.allocate_buffer(length.size())
    _write(batch, pa.FixedSizeBufferWriter(room))
    return room


def _write(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
