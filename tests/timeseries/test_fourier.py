"""Fourier transforms against their definition."""

from __future__ import annotations

import cmath
import math

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, by_series, random_rows

from headwater.timeseries.operators.fourier import Fourier
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here


def test_by_definition() -> None:
    table = random_rows(3, rows=40, nulls=False)
    found = {row["seq"]: row for row in answer(Fourier(Values(table), ORDERING, "x", 0.5))}
    for rows in by_series(table).values():
        n = len(rows)
        for k, row in enumerate(rows):
            wanted = sum(r["x"] * cmath.exp(-2j * math.pi * k * j / n) for j, r in enumerate(rows))
            mine = found[row["seq"]]
            assert complex(mine["ft_real"], mine["ft_imag"]) == pytest.approx(wanted, abs=1e-9)
            assert mine["freq"] == pytest.approx((k if k < (n + 1) // 2 else k - n) / (n * 0.5))


def test_a_missing_value_leaves_its_series_without_a_spectrum() -> None:
    table = random_rows(3, rows=40, nulls=False).to_pylist()
    table[0]["x"] = None
    lost = table[0]["s"]
    rows = pa.Table.from_pylist(table, random_rows(3).schema)
    for row in answer(Fourier(Values(rows), ORDERING, "x", 1.0)):
        assert (row["ft_real"] is None) == (row["ft_imag"] is None) == (row["s"] == lost)


def test_few_rows() -> None:
    table = random_rows(1, nulls=False)
    assert answer(Fourier(Values(table.slice(0, 0)), ORDERING, "x", 1.0)) == []
    one = run_here(Fourier(Values(table.slice(0, 1)), ORDERING, "i", 1.0)).to_pylist()[0]
    assert (one["freq"], one["ft_real"], one["ft_imag"]) == (0.0, float(one["i"]), 0.0)
