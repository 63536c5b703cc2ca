"""Blocks: many rows as one value of a Spark column.

A block is one Arrow record batch in IPC form without its schema, which both sides know: the message (continuation, metadata, body) as
it is, or in an LZ4 frame. Its ``size`` stands beside it, so that the message is written once, to where it stays.

Spark compresses what it shuffles, so blocks are only compressed where it is told not to. Messages are multiples of 8 bytes long, so that in an
Arrow column of blocks each begins at a multiple of 8 and its numbers can be read in place.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

__all__ = ["Block", "decode", "encode"]

_CODEC = "lz4"


class Block(NamedTuple):
    """Rows in one piece of memory."""

    size: int
    """0 if the message is as it is, else how long it is when the frame is unpacked."""
    data: pa.Buffer


def encode(table: pa.Table, *, compress: bool = False) -> Block:
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
    return Block(message.size, pa.compress(message, _CODEC)) if compress else Block(0, message)


def decode(block: Block, schema: pa.Schema) -> pa.Table:
    """The rows of a block; they refer to its memory."""
    message = pa.decompress(block.data, block.size, _CODEC) if block.size else block.data
    return pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])
