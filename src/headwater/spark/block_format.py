"""Blocks: many rows as one value of a Spark column.

A block is one Arrow record batch in IPC form without its schema, which both sides know:

    byte 0..7     0: the batch follows as it is; else the length of the LZ4 frame that holds it
    byte 8..15    the length of the batch
    byte 16..     the record batch message (continuation, metadata, body) or its frame, padded to a multiple of 8

Spark compresses what it shuffles, so blocks are only compressed where it is told not to. Lengths are multiples of 8, so that in an Arrow
column of blocks each begins at a multiple of 8 and its numbers can be read in place.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["decode", "encode"]

_CODEC = "lz4"


def encode(table: pa.Table, *, compress: bool = False) -> bytes:
    """A table as a block.

    >>> rows = pa.table({"a": [1, 2], "b": ["x", None]})
    >>> decode(encode(rows, compress=True), rows.schema).equals(rows)
    True
    """
    batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
    if len(batches) > 1:  # texts of more than 2 GiB
        raise pa.ArrowCapacityError("a block is too large")
    message = batch.serialize()
    if not compress:
        return b"".join((bytes(8), message.size.to_bytes(8, "little"), message))
    packed = pa.compress(message, _CODEC)
    lengths = (packed.size.to_bytes(8, "little"), message.size.to_bytes(8, "little"))
    return b"".join((*lengths, packed, bytes(-packed.size % 8)))


def decode(block: bytes | pa.Buffer, schema: pa.Schema) -> pa.Table:
    """The rows of a block; they refer to its memory."""
    buffer = pa.py_buffer(block)
    head = buffer.slice(0, 16).to_pybytes()
    packed, size = int.from_bytes(head[:8], "little"), int.from_bytes(head[8:], "little")
    message = pa.decompress(buffer.slice(16, packed), size, _CODEC) if packed else buffer.slice(16)
    return pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])
