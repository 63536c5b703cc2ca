"""The order by digits: against numpy's lexsort."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.timeseries.digits import order_by_digits

ENDS = [-(1 << 63), (1 << 63) - 1, 0, -1]


@given(
    st.lists(
        st.tuples(
            st.integers(-3, 3),
            st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from(ENDS),
            st.floats(allow_nan=False).map(lambda x: x + 0.0) | st.sampled_from([0.0, 1.0]),
            st.integers(0, 70_000),
        ),
        max_size=50,
    )
)
def test_any_columns(rows: list[tuple[int, int, float, int]]) -> None:
    kinds = (np.int8, np.int64, np.float64, np.int32)
    words = [np.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    for some in (words, words[:1], words[1:2], words[2:], words[::-1]):
        assert order_by_digits(some).tolist() == np.lexsort(some[::-1]).tolist()


@pytest.mark.parametrize("kind", [np.uint64, np.int16, np.float32])
def test_kinds(kind: type) -> None:
    rng = np.random.default_rng(3)
    word: npt.NDArray[Any] = (rng.integers(0, 1 << 62, 500).astype(np.uint64) * np.uint64(3)).astype(kind)
    word = np.nan_to_num(word)
    assert order_by_digits([word]).tolist() == np.argsort(word, kind="stable").tolist()


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000])
@pytest.mark.parametrize("bits", [20, 50, 62])
def test_times_of_coarse_units(unit: int, bits: int) -> None:
    rng = np.random.default_rng(unit + bits)
    keys = rng.integers(0, 300, 3_000).astype(np.int32)
    times = -(1 << 61) + rng.integers(0, max(2, (1 << bits) // unit // 4), 3_000) * unit
    times[::7] = times[0]  # ties stay in the order they have
    cases: list[list[npt.NDArray[Any]]] = [[keys, times], [times, keys], [times]]
    for words in cases:
        assert order_by_digits(words).tolist() == np.lexsort(words[::-1]).tolist()
