"""Numbers that are no doubles: decimals, with and without room for 64 bits, and whole numbers beyond 2^53."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.timeseries.running.here import run_here

D = Decimal
BIG = 2**53 + 1


@pytest.fixture
def lake(tmp_path: Any) -> hw.Lake:
    return hw.connect(tmp_path)


def test_products_of_decimals_with_nulls(lake: hw.Lake) -> None:
    narrow = pa.array([D("1.5"), None, D("2.5"), D("3.5")], pa.decimal128(3, 1))
    stream = lake.stream(pa.table({"a": narrow, "b": [1.0, 2.0, 2.0, 3.0]}))
    assert run_here(stream.covariance().plan)["b"].to_pylist() == [1.0, pytest.approx(2 / 3)]
    assert run_here(stream.correlation().plan)["a"].to_pylist() == [1.0, 1.0]
    assert run_here(stream.gramian().plan)["a"].to_pylist()[0] == 1.5**2 + 2.5**2 + 3.5**2


@pytest.mark.parametrize("kind", [pa.decimal128(3, 1), pa.decimal128(38, 38), pa.int8(), pa.float32()], ids=str)
def test_zero_of_every_type(lake: hw.Lake, kind: pa.DataType) -> None:
    values = pa.array([D(0), D(0)] if pa.types.is_decimal(kind) else [0, 0], kind)
    stream = lake.stream(pa.table({"t": [0, 2], "v": values}), time="t")
    for filled in (stream.interpolate(1, "zero"), stream.resample(1, fill="zero")):
        found = run_here(filled.plan)
        assert found.schema.field("v").type == kind
        assert found["v"].to_pylist() == [0, 0, 0]


def test_whole_numbers_that_are_no_doubles(lake: hw.Lake) -> None:
    stream = lake.stream(pa.table({"t": [0, 2], "p": [BIG, BIG], "n": [BIG, None]}), time="t")
    assert run_here(stream.vwap("p", "p", rows=1).plan)["vwap"].to_pylist() == [float(BIG)] * 2
    assert run_here(stream.interpolate(1, "linear", columns="p").plan)["p"].to_pylist() == [float(BIG)] * 3
    assert run_here(stream.fourier("p").plan)["ft_real"].to_pylist() == [2.0 * float(BIG), 0.0]
    assert run_here(stream.ema("n", alpha=0.5).plan)["n_ema"].to_pylist()[0] == float(BIG)
