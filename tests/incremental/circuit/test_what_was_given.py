"""What a step is given is taken as it was meant, or refused: nulls, verbs with weights, rows that come and go, and ends beyond a type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headwater as hw

KEYED = pa.schema([("id", pa.int64()), pa.field("x", pa.int64(), nullable=False)])


def _table() -> hw.Circuit:
    circuit = hw.Circuit()
    circuit.input("t", KEYED, key="id").output("t")
    circuit.step(t=pa.table({"id": [1], "x": [1]}))
    return circuit


@pytest.mark.parametrize("verb", [hw.Insert, hw.Upsert, hw.Patch, None])
def test_a_null_is_no_zero(verb: Any) -> None:
    circuit = _table()
    rows = pa.table({"id": [2 if verb is hw.Insert else 1], "x": pa.array([None], pa.int64())})
    with pytest.raises(hw.ConstraintError, match="E2001"):
        circuit.step(t=rows if verb is None else verb(rows))
    assert circuit.step(t=hw.Delete(pa.table({"id": [1]})))["t"].to_arrow()["x"].to_pylist() == [1]


@pytest.mark.parametrize("verb", [hw.Insert, hw.Upsert, hw.Delete, hw.Patch])
def test_a_verb_takes_no_weights(verb: Any) -> None:
    circuit = _table()
    with pytest.raises(hw.InputError, match="E1001"):
        circuit.step(t=verb(pa.table({"id": [2], "x": [2], "_weight": [1]})))
    assert circuit.step(t=hw.Delete(pa.table({"id": [2]})))["t"].is_empty


def test_the_key_that_stands_twice_is_named() -> None:
    with pytest.raises(hw.ConstraintError, match="id=6"):
        _table().step(t=hw.Insert(pa.table({"id": [5, 6, 6], "x": [1, 2, 3]})))


@pytest.mark.parametrize("weights", [[1, -1], [0, 0]])
def test_a_row_that_comes_and_goes_moves_no_watermark(weights: list[int]) -> None:
    circuit = hw.Circuit()
    fresh = circuit.input("t", pa.schema([("ts", pa.int64())])).watermark("ts", 10)
    fresh.output("fresh")
    fresh.late().output("late")
    circuit.step(t=pa.table({"ts": [100]}))
    circuit.step(t=pa.table({"ts": [10**9, 10**9], "_weight": weights}))
    found = circuit.step(t=pa.table({"ts": [101, 80]}))
    assert found["fresh"].to_arrow()["ts"].to_pylist() == [101]
    assert found["late"].to_arrow()["ts"].to_pylist() == [80]


@pytest.mark.parametrize("dtype", [pa.int8(), pa.int32(), pa.int64(), pa.date32()])
@pytest.mark.parametrize("way", ["window", "session"])
def test_ends_are_values_of_the_type(dtype: pa.DataType, way: str) -> None:
    circuit = hw.Circuit()
    getattr(circuit.input("t", pa.schema([("ts", dtype)])), way)("ts", 100).output("o")
    bits = 32 if pa.types.is_date(dtype) else dtype.bit_width
    plain = pa.int32() if pa.types.is_date(dtype) else dtype

    def step(value: int) -> list[Any]:
        rows = pa.table({"ts": pa.array([value], plain).cast(dtype)})
        found = circuit.step(t=rows)["o"].to_arrow()[f"{way}_end"]
        return [int(v) for v in found.cast(plain).to_pylist()]

    assert step(5) == [100 if way == "window" else 105]
    with pytest.raises(hw.UnsupportedError):
        step(2 ** (bits - 1) - 2)
    assert step(6)[-1] == (100 if way == "window" else 106)
