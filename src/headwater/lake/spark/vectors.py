"""Deletion vectors inside Spark: hiding the rows that are gone while Spark reads the files itself.

Only files that have a vector come here. Each row of theirs knows its file and its position (``_metadata``); a small
frame, sent to every executor, maps a file to the bits of its vector:

    file   the path as ``_metadata.file_path`` writes it
    bits   array of chunks of 65,536 positions; a chunk is an array of 64-bit words, or null if no row of it is gone

So a row costs one look-up and one bit, however many rows are gone; a vector costs at most one bit a row, and chunks
that nothing is deleted from cost nothing. The bits travel as Arrow, never as a list of positions in Python.

Invariant: a file that does not find its bits fails the query. A path that Spark writes in another way than we expect
must never bring deleted rows back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from headwater.lake.deletion_vectors import positions

if TYPE_CHECKING:
    from pyroaring import BitMap64
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PATH", "bits_of", "located", "without_deleted"]

_CHUNK_BITS = 16
_WORDS = (1 << _CHUNK_BITS) // 64
PATH, POSITION = "__hw_path", "__hw_position"
_FILE, _BITS = "__hw_file", "__hw_bits"


def bits_of(bitmap: BitMap64) -> list[Any]:
    """The chunks of a vector.

    >>> from pyroaring import BitMap64
    >>> chunks = bits_of(BitMap64([1, 64, 131072]))
    >>> [None if c is None else c.tolist() for c in chunks]
    [[2, 1], None, [1]]
    """
    rows = positions(bitmap)
    if not len(rows):
        return []
    chunks: list[Any] = [None] * (int(rows[-1] >> _CHUNK_BITS) + 1)
    of_chunk = rows >> _CHUNK_BITS
    for chunk in np.unique(of_chunk):
        low, high = np.searchsorted(of_chunk, (chunk, chunk + 1))
        inside = (rows[low:high] & ((1 << _CHUNK_BITS) - 1)).astype(np.uint64)
        words = np.zeros(int(inside[-1] // 64) + 1, np.uint64)
        np.bitwise_or.at(words, (inside // 64).astype(np.int64), np.uint64(1) << (inside % np.uint64(64)))
        chunks[int(chunk)] = words.view(np.int64)
    return chunks


def located(frame: DataFrame) -> DataFrame:
    """A scan with each row's file and position in the columns `PATH` and `POSITION`."""
    return frame.select("*", sf.col("_metadata.file_path").alias(PATH), sf.col("_metadata.row_index").alias(POSITION))


def without_deleted(session: SparkSession, frame: DataFrame, vectors: Mapping[str, BitMap64]) -> DataFrame:
    """``frame``, a `located` scan of the files ``vectors`` names (as Spark writes their paths),
    without deleted rows.
    """
    kind = pa.list_(pa.list_(pa.int64()))
    table = pa.table({_FILE: list(vectors), _BITS: pa.array([bits_of(v) for v in vectors.values()], kind)})
    bits = sf.broadcast(session.createDataFrame(table))
    joined = frame.join(bits, sf.col(PATH) == sf.col(_FILE), "left")
    lost = sf.raise_error(sf.concat(sf.lit("no deletion vector was found for "), sf.col(PATH)))
    words = f"get({_BITS}, cast(shiftright({POSITION}, {_CHUNK_BITS}) as int))"
    word = f"get({words}, cast(shiftright({POSITION}, 6) & {_WORDS - 1} as int))"
    gone = sf.expr(f"coalesce(getbit({word}, cast({POSITION} & 63 as int)), 0) = 1")
    kept = sf.when(sf.col(_FILE).isNull(), lost.cast("boolean")).otherwise(~gone)
    return joined.where(kept).drop(_FILE, _BITS)
