"""Buckets: which rows belong together, decided in every task alike.

Rows that agree in their keys must meet in one task, so all tasks, on all machines and with all versions of libraries,
must give them the same number. That number is a 64-bit hash of the key's values, computed on whole columns with numpy:

1. a value becomes a word: whole numbers, booleans, dates and times their number; floats the bits of the number as a
   double, with one NaN and one zero; decimals their unscaled number without trailing zeros, and its scale; texts and
   bytes a polynomial of their bytes modulo 2^64, and their length; null a word of its own;
2. words are mixed (the finaliser of SplitMix64) and combined in the order of the columns.

So equal numbers have equal hashes in columns of different width. The hash places rows and never decides that they are
equal. Nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.dictionaries import encoded
from headwater.base.errors import UnsupportedError

__all__ = ["bucket_of", "hash_of"]

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0x2545F4914F6CDD1D)
_PRIME = 0x00000100000001B3
_WORD = (1 << 64) - 1


def bucket_of(table: pa.Table | pa.RecordBatch, keys: Sequence[str], buckets: int) -> npt.NDArray[np.int32]:
    """For each row the number of its bucket, from 0.

    >>> integers, doubles = pa.table({"k": [1, 2, 1]}), pa.table({"k": [1.0, 2.0, 1.0]})
    >>> bucket_of(integers, ["k"], 8).tolist() == bucket_of(doubles, ["k"], 8).tolist()
    False
    >>> a, _, b = bucket_of(pa.table({"k": ["x", "y", "x"]}), ["k"], 8)
    >>> bool(a == b)
    True
    """
    hashes = hash_of([table.column(name) for name in keys], table.num_rows)
    # The upper half: the lower bits of many hashes are not as good.
    return ((hashes >> np.uint64(32)) % np.uint64(buckets)).astype(np.int32)


def hash_of(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> Hashes:
    """A hash of each row's values in these columns."""
    if len(columns) == 1:
        words, codes = _words(columns[0])
        hashes = _combined(np.full(len(words), _SEED, np.uint64), words)
        return hashes if codes is None else hashes[codes]
    combined = np.full(rows, _SEED, np.uint64)
    for column in columns:
        words, codes = _words(column)
        combined = _combined(combined, words if codes is None else words[codes])
    return combined


def _combined(hashes: Hashes, words: Hashes) -> Hashes:
    return _mixed(hashes * np.uint64(31) + _mixed(words))


def _mixed(words: Hashes) -> Hashes:
    x = words + _NULL
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _words(column: pa.ChunkedArray | pa.Array) -> tuple[Hashes, npt.NDArray[Any] | None]:
    """The word of each value, or of each value that occurs, and which of them each row has."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _NULL, np.uint64), None
    if pa.types.is_dictionary(kind) or _is_bytes(kind) or pa.types.is_decimal(kind):
        # Each value that occurs is hashed once.
        once = encoded(column)
        values = once.dictionary
        if pa.types.is_dictionary(kind):
            found, inner = _words(values)
            found = found if inner is None else found[inner]
        else:
            found = _text_words(values) if _is_bytes(kind) else _decimal_words(values)
        codes: npt.NDArray[Any] = once.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)
        return np.append(found, _NULL), codes
    numbers = _number_words(column)
    return np.where(np.asarray(pc.is_null(column)), _NULL, numbers) if column.null_count else numbers, None


def _is_bytes(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_string(kind)
        or t.is_large_string(kind)
        or t.is_string_view(kind)
        or t.is_binary(kind)
        or t.is_large_binary(kind)
        or t.is_binary_view(kind)
        or t.is_fixed_size_binary(kind)
    )


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)


def _number_words(column: pa.ChunkedArray | pa.Array) -> Hashes:
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif _is_moment(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64())
    elif pa.types.is_floating(kind):
        values = np.asarray((column.fill_null(0.0) if column.null_count else column).cast(pa.float64())) + 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    if pa.types.is_integer(column.type):
        whole = np.asarray(column.fill_null(0) if column.null_count else column)
        words: Hashes = whole if whole.dtype == np.uint64 else whole.astype(np.int64).view(np.uint64)
        return words
    raise UnsupportedError.operation(
        f"a key of type {kind}",
        "rows are put together by plain values only",
        "use one of its fields, or its text, as the key",
    )


def _text_words(values: pa.Array) -> Hashes:
    wide = values.cast(pa.large_binary())
    offsets = np.frombuffer(wide.buffers()[1], np.int64, len(wide) + 1, wide.offset * 8)
    lengths = np.diff(offsets)
    if not len(wide):
        return np.empty(0, np.uint64)
    data = wide.buffers()[2]
    first = int(offsets[0])
    letters = (
        np.frombuffer(data, np.uint8, int(offsets[-1]) - first, first).astype(np.uint64)
        if data is not None and int(offsets[-1]) > first
        else np.empty(0, np.uint64)
    )
    longest = int(lengths.max())
    powers = np.cumprod(np.concatenate(([1], np.full(longest, _PRIME))).astype(np.uint64))
    within = np.arange(len(letters), dtype=np.int64) - np.repeat(offsets[:-1] - first, lengths)
    terms = np.append((letters + np.uint64(1)) * powers[within], np.uint64(0))
    sums = np.add.reduceat(terms, offsets[:-1] - first)
    sums[lengths == 0] = 0
    words: Hashes = sums + lengths.astype(np.uint64) * np.uint64(0x27D4EB2F165667C5)
    return words


def _decimal_words(values: pa.Array) -> Hashes:
    return np.array([_decimal_word(v) for v in values.to_pylist()], np.uint64)


def _decimal_word(value: Decimal) -> int:
    sign, digits, exponent = value.normalize().as_tuple()
    unscaled = int("".join(map(str, digits)))
    assert isinstance(exponent, int)
    return ((-unscaled if sign else unscaled) * _PRIME + exponent) & _WORD
