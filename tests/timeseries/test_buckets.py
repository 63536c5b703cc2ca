"""Rows that agree in their keys have one bucket, whatever column and machine they are on."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater.base.errors import UnsupportedError
from headwater.spark.buckets import bucket_of, hash_of


def _hashes(values: pa.Array) -> list[int]:
    found: list[int] = hash_of([pa.chunked_array([values])], len(values)).tolist()
    return found


PINNED_NUMBERS = [949344, 18947, 519084, 317788, 500795]
PINNED_TEXTS = [949344, 6811, 650240, 327176, 317788, 991722]


def test_the_hash_is_pinned() -> None:
    # Tasks of one job may run on machines with other libraries: the numbers are part of the code.
    assert [h % 1_000_003 for h in _hashes(pa.array([0, 1, -1, None, 2**62]))] == PINNED_NUMBERS
    assert [h % 1_000_003 for h in _hashes(pa.array(["", "a", "ab", "ba", None, "naïve 漢字"]))] == PINNED_TEXTS


def test_equal_values_of_other_types_agree() -> None:
    assert _hashes(pa.array([1, -2, None], pa.int8())) == _hashes(pa.array([1, -2, None], pa.int64()))
    assert _hashes(pa.array([0.0, -0.0]))[0] == _hashes(pa.array([0.0, -0.0]))[1]
    nan = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    assert len(set(_hashes(pa.array(nan)))) == 1
    assert _hashes(pa.array([1.5], pa.float32())) == _hashes(pa.array([1.5], pa.float64()))
    for kind in (pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())):
        texts = pa.array(["", "a", "bc", None, "a"])
        assert _hashes(texts.cast(kind) if not pa.types.is_dictionary(kind) else texts.dictionary_encode()) == _hashes(
            texts
        )
    assert _hashes(pa.array([Decimal("1.50")])) == _hashes(pa.array([Decimal("1.5")]))
    day = pa.array([1, None], pa.int32()).cast(pa.date32())
    assert _hashes(day) == _hashes(pa.array([1, None]))


def test_slices_and_chunks_do_not_matter() -> None:
    texts = pa.array([f"s{i % 7}" if i % 11 else None for i in range(100)])
    cut = pa.table({"k": pa.chunked_array([texts.slice(0, 13), texts.slice(13, 50), texts.slice(63)])})
    whole = pa.table({"k": texts})
    assert bucket_of(cut, ["k"], 16).tolist() == bucket_of(whole, ["k"], 16).tolist()
    assert bucket_of(whole.slice(13, 20), ["k"], 16).tolist() == bucket_of(whole, ["k"], 16).tolist()[13:33]
    assert bucket_of(pa.table({"k": texts.slice(0, 0)}), ["k"], 16).tolist() == []
    assert _hashes(pa.array([], pa.null())) == []


def test_they_are_spread_evenly() -> None:
    for values in (
        pa.array(range(100_000)),
        pa.array([f"SYM{i:05d}" for i in range(100_000)]),
        pa.array(np.arange(1e5) / 7),
    ):
        counts = np.bincount(bucket_of(pa.table({"k": values}), ["k"], 64), minlength=64)
        assert counts.min() * 64 / 100_000 > 0.8
        assert counts.max() * 64 / 100_000 < 1.2


def test_nested_keys_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="a key of type list"):
        bucket_of(pa.table({"k": [[1], [2]]}), ["k"], 4)
