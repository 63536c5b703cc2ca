"""Exact sums over frames against fractions, for numbers of every size."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from headwater.kernels.window_sums import DOUBLE, PAIR, WORD, sums

N = 120


def run(rows: Any, kind: int, lo: Any, hi: Any) -> tuple[Any, ...]:
    n = len(lo)
    out = (np.zeros(n, np.int64), np.zeros((n, 2), np.int64), np.zeros(n, np.bool_), np.zeros(n), np.zeros(n))
    sums(rows, np.arange(n), lo, hi, np.ones(n, np.bool_), 1, kind, 0, 0, True, *out)
    return out


def frames(rng: np.random.Generator) -> tuple[Any, Any]:
    back, ahead = int(rng.integers(0, 50)), int(rng.integers(0, 5))
    return np.maximum(0, np.arange(N) - back), np.minimum(N, np.arange(N) + 1 + ahead)


def nearest_double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check(values: list[Fraction], rows: Any, kind: int, rng: np.random.Generator) -> None:
    lo, hi = frames(rng)
    counts, pairs, fits, totals, spreads = run(rows, kind, lo, hi)
    for i in range(N):
        some = values[lo[i] : hi[i]]
        total = sum(some, Fraction(0))
        assert counts[i] == len(some)
        assert totals[i] == nearest_double(total)
        mean = total / len(some)
        spread = nearest_double(sum(((v - mean) ** 2 for v in some), Fraction(0)))
        assert math.isclose(spreads[i], spread, rel_tol=1e-15, abs_tol=5e-324)
        if kind != DOUBLE:
            assert fits[i] == (-(2**127) <= total < 2**127)
            if fits[i]:
                assert (int(pairs[i, 0]) << 64) + (int(pairs[i, 1]) & (2**64 - 1)) == total


@pytest.mark.parametrize("scale", [0, 2, 20, 100, 150, -310])
def test_doubles(scale: int) -> None:
    rng = np.random.default_rng(abs(scale))
    x = (
        rng.normal(size=N) * 10.0 ** rng.integers(-abs(scale), abs(scale) + 1, N)
        if scale >= 0
        else rng.normal(size=N) * 1e-310
    )
    rows = np.zeros((N, 3), np.int64)
    rows[:, 1] = x.view(np.int64)
    check([Fraction(float(v)) for v in x], rows, DOUBLE, rng)


@pytest.mark.parametrize("most", [10, 2**40, 2**63])
def test_words(most: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-most, most, N)
    rows = np.zeros((N, 3), np.int64)
    rows[:, 1] = x
    check([Fraction(int(v)) for v in x], rows, WORD, rng)


@pytest.mark.parametrize("bits", [70, 120, 127])
def test_pairs_of_words(bits: int) -> None:
    rng = np.random.default_rng(2)
    x = [int.from_bytes(rng.bytes(16), "big") % (2 ** (bits + 1)) - 2**bits for _ in range(N)]
    rows = np.zeros((N, 3), np.int64)
    rows[:, 1] = [v >> 64 for v in x]
    rows[:, 2] = np.array([(v & (2**64 - 1)) ^ (1 << 63) for v in x], dtype=np.uint64).view(np.int64)
    check([Fraction(v) for v in x], rows, PAIR, rng)


def test_not_finite() -> None:
    x = np.array([1.0, math.inf, 2.0, -math.inf, 3.0, math.nan, 4.0, -0.0, 1e308, 1e308])
    rows = np.zeros((len(x), 2), np.int64)
    rows[:, 1] = x.view(np.int64)
    at = np.arange(len(x))
    _, _, _, totals, spreads = run(rows, DOUBLE, np.maximum(0, at - 1), at + 1)
    assert [str(t) for t in totals] == ["1.0", "inf", "inf", "-inf", "-inf", "nan", "nan", "4.0", "1e+308", "inf"]
    assert spreads[0] == 0.0
    assert math.isnan(spreads[1])


def test_halves_round_to_even() -> None:
    x = np.array([2.0**53, 1.0, 2.0**53 + 2, 1.0, 5e-324])
    rows = np.zeros((len(x), 2), np.int64)
    rows[:, 1] = x.view(np.int64)
    lo, hi = np.array([0, 0, 2, 2, 0]), np.array([1, 2, 3, 4, 5])
    totals = run(rows, DOUBLE, lo[:4], hi[:4])[3]
    assert totals.tolist() == [2.0**53, 2.0**53, 2.0**53 + 2, 2.0**53 + 4]
