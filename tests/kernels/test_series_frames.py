"""Sums and moments over frames: right, and the same wherever the rows before them were cut off."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headwater.kernels.arrays import read_only
from headwater.kernels.series_frames import frame_moments, frame_sums, row_frames


@pytest.mark.parametrize("seed", range(25))
def test_frames_of_any_length(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 900))
    starts = np.unique(np.concatenate(([0], rng.integers(0, n, 2)))).astype(np.int64)
    values = rng.normal(size=n) * 10.0 ** rng.integers(-3, 3, n)
    valid = rng.random(n) < 0.8
    begin, end = sorted(rng.integers(-600, 200, 2).tolist())
    first = int(rng.integers(0, 600))
    lo, hi = np.empty(n, np.int64), np.empty(n, np.int64)
    row_frames(starts, n, begin, end, lo, hi)
    present = np.where(valid, values, 0.0)
    sums, means, squares = np.empty(n), np.empty(n), np.empty(n)
    frame_sums(read_only(present), starts, first, lo, hi, sums)
    frame_moments(read_only(values), valid, starts, first, lo, hi, means, squares)
    edges = np.append(starts, n)
    for i in range(n):
        s = int(np.searchsorted(starts, i, "right")) - 1
        a = max(edges[s], min(edges[s + 1], i + begin))
        b = max(a, min(edges[s + 1], i + end + 1))
        assert (lo[i], hi[i]) == (a, b)
        seen = values[a:b][valid[a:b]]
        assert sums[i] == pytest.approx(math.fsum(seen), abs=1e-13 * np.abs(seen).sum())
        if len(seen):
            assert means[i] == pytest.approx(seen.mean(), abs=1e-12 * np.abs(seen).max())
            assert squares[i] == pytest.approx(((seen - seen.mean()) ** 2).sum(), rel=1e-10, abs=1e-18)
        else:
            assert math.isnan(means[i])
    # Without the first rows, whose number is known, everything that does not look at them is the same bit for bit.
    cut = int(rng.integers(0, edges[1]))
    kept = np.flatnonzero(lo[cut:] >= cut)
    rest = np.unique(np.maximum(starts - cut, 0))
    low, high = lo[cut:][kept] - cut, hi[cut:][kept] - cut
    again = np.empty((3, len(kept)))
    frame_sums(read_only(present[cut:].copy()), rest, first + cut, low, high, again[0])
    frame_moments(read_only(values[cut:].copy()), valid[cut:].copy(), rest, first + cut, low, high, again[1], again[2])
    for whole, part in zip((sums, means, squares), again, strict=True):
        assert np.array_equal(whole[cut:][kept], part, equal_nan=True)
