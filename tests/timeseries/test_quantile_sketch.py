"""The sketch of quantiles: its bound is never exceeded, however values are cut, ordered and merged."""

from __future__ import annotations

import math
import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from headwater.timeseries.quantile_sketch import QuantileSketch, capacity_of

Words = npt.NDArray[np.int64]
PROBABILITIES = [0, 0.001, 0.01, 0.25, 0.5, 0.77, 0.99, 0.999, 1]
SIZE = int(os.environ.get("HEADWATER_SKETCH_VALUES", "60000"))


def worst(values: Words, found: Words, probabilities: list[float]) -> float:
    """How far the ranks of what was found are from what they should be, as a share of the values."""
    ordered = np.sort(values)
    n = len(ordered)
    off = []
    for p, v in zip(probabilities, found, strict=True):
        target = max(1, math.ceil(p * n))
        first, last = int(np.searchsorted(ordered, v)) + 1, int(np.searchsorted(ordered, v, "right"))
        assert first <= last, "a value that does not occur"
        off.append(max(0, first - target, target - last))
    return max(off) / n


def shapes(random: np.random.Generator, n: int) -> list[Words]:
    """Columns in the orders and of the kinds that sketches are bad at."""
    up = np.arange(n)
    zigzag = np.empty(n, np.int64)
    zigzag[::2], zigzag[1::2] = up[: (n + 1) // 2], up[::-1][: n // 2]
    return [
        up,
        up[::-1].copy(),
        zigzag,
        random.permutation(n),
        random.integers(0, 5, n),
        (random.pareto(0.5, n) * 100).clip(0, 1e18).astype(np.int64),
        np.zeros(n, np.int64),
        np.where(random.random(n) < 0.999, 7, random.integers(-(2**62), 2**62, n)),
        random.integers(0, 10, n)[:17],
        np.empty(0, np.int64),
    ]


@pytest.mark.parametrize("error", [0.1, 0.02, 0.003])
@pytest.mark.parametrize("seed", range(2))
def test_the_error_is_within_its_bound(seed: int, error: float) -> None:
    random = np.random.default_rng(seed)
    columns = shapes(random, SIZE)
    parts = [QuantileSketch(len(columns), error) for _ in range(1 + 3 * seed)]
    for start in range(0, SIZE, 7000):
        parts[int(random.integers(len(parts)))].add([c[start : start + 7000] for c in columns])
    whole = QuantileSketch(len(columns), error)
    for part in random.permutation(len(parts)):
        table = parts[part].to_arrow()
        cut = int(random.integers(table.num_rows + 1))
        # A sketch may be cut on its way, and taken in piece by piece.
        whole.merge(table.slice(0, cut))
        whole.merge(table.slice(cut))
    assert whole.counts().tolist() == [len(c) for c in columns]
    for column, found in zip(columns, whole.quantiles(PROBABILITIES), strict=True):
        assert (found is None) == (not len(column))
        if found is not None:
            assert found[0] == column.min() and found[-1] == column.max()
            assert worst(column, found, PROBABILITIES) <= error


def test_few_values_are_exact() -> None:
    values = np.random.default_rng(1).integers(0, 1000, 3999)
    sketch = QuantileSketch(1, 0.01)
    sketch.add([values])
    (found,) = sketch.quantiles(PROBABILITIES)
    assert found is not None and worst(values, found, PROBABILITIES) == 0


def test_no_error_keeps_everything() -> None:
    values = np.random.default_rng(1).integers(0, 10**9, 20_000)
    sketch = QuantileSketch(1, 0)
    sketch.add([values])
    (found,) = sketch.quantiles(PROBABILITIES)
    assert found is not None and worst(values, found, PROBABILITIES) == 0


@pytest.mark.parametrize("error", [0.5, 0.1, 0.01, 0.001])
def test_capacity_pays_for_all_levels(error: float) -> None:
    capacity = capacity_of(error)
    assert capacity is not None and capacity % 8 == 0
    for n in (1e6, 1e9, 2.0**40):
        levels = max(0, math.floor(math.log(n / capacity, 8)) + 1)
        assert 4 * levels / capacity <= error * (1 + 1e-9)


def test_memory_is_bounded() -> None:
    sketch = QuantileSketch(3, 0.05)
    random = np.random.default_rng(0)
    for _ in range(20):
        sketch.add([random.integers(0, 10**9, 30_000) for _ in range(3)])
    capacity = capacity_of(0.05)
    assert capacity is not None
    held = pa.compute.list_value_length(sketch.to_arrow()["values"]).to_pylist()
    assert sum(held) < 3 * 5 * capacity
