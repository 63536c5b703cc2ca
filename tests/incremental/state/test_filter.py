"""A filter lets everything through that is there, and little else."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.kernels.filter import WORDS, fill_filter, filter_blocks, may_hold


def asked(rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(rows)
    hashes = np.sort(random.integers(0, 1 << 64, rows, dtype=np.uint64))
    words = np.zeros(filter_blocks(rows) * WORDS, dtype=np.uint64)
    fill_filter(hashes, words)
    there, absent = np.empty(rows, dtype=np.bool_), np.empty(20_000, dtype=np.bool_)
    may_hold(words, hashes, there)
    may_hold(words, random.integers(0, 1 << 64, len(absent), dtype=np.uint64), absent)
    return there, absent


@pytest.mark.parametrize("rows", [0, 1, 64, 65, 1000, 100_000])
def test_nothing_that_is_there_is_held_back(rows: int) -> None:
    there, absent = asked(rows)
    assert there.all()
    assert absent.mean() < 0.04


def test_it_is_part_of_the_format() -> None:
    words = np.zeros(2 * WORDS, dtype=np.uint64)
    x = 0xC0FFEE1234567890
    fill_filter(np.array([x], dtype=np.uint64), words)
    y = x * 0x9E3779B97F4A7C15 % 2**64
    bits = {((x >> 32) * 2 >> 32) * 512 + (y >> (55 - 9 * k)) % 512 for k in range(5)}
    assert {64 * i + b for i, w in enumerate(words.tolist()) for b in range(64) if w >> b & 1} == bits
