"""Approximate distinct counts: as near as they say, the same whatever came and went before, and in bounded state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw

_SCHEMA = pa.schema([("k", pa.string()), ("v", pa.string())])


def _circuit(
    schema: pa.Schema = _SCHEMA, *, shards: int = 1, error: float = 0.05, by: tuple[str, ...] = ("k",)
) -> hw.Circuit:
    circuit = hw.Circuit(shards=shards)
    rows = circuit.input("t", schema)
    rows.group_by(*by).approx_distinct("v", name="n", error=error).output("o")
    return circuit


_ROWS = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.none() | st.text(max_size=3)), max_size=30)


@pytest.mark.long
@given(st.lists(_ROWS, min_size=1, max_size=4), st.data(), st.sampled_from([1, 2]))
def test_what_came_and_went_leaves_no_trace(
    batches: list[list[tuple[str | None, str | None]]], data: st.DataObject, shards: int
) -> None:
    circuit = _circuit(shards=shards)
    found = hw.ChangeBatch.empty(circuit.outputs["o"].layout.schema)
    live: list[tuple[str | None, str | None]] = []
    for rows in batches:
        gone = data.draw(st.lists(st.sampled_from(range(len(live))), unique=True)) if live else []
        weights = [1] * len(rows) + [-1] * len(gone)
        change = [*rows, *(live[i] for i in gone)]
        live = [row for i, row in enumerate(live) if i not in gone] + rows
        found = found + circuit.step(t=_table(change).append_column("_weight", pa.array(weights, pa.int64())))["o"]
    assert found == _circuit().step(t=_table(live))["o"]
    exact = {k: len({v for key, v in live if key == k and v is not None}) for k, _ in live}
    assert {r["k"]: r["n"] for r in found.consolidate().inserted().to_pylist()} == pytest.approx(exact, abs=2)


def _table(rows: list[tuple[str | None, str | None]]) -> pa.Table:
    return pa.table({"k": [k for k, _ in rows], "v": [v for _, v in rows]}, schema=_SCHEMA)


@pytest.mark.long
@pytest.mark.parametrize("error", [0.2, 0.05, 0.02])
@pytest.mark.parametrize("values", [50, 700, 5_000])
def test_the_error_is_what_it_says(error: float, values: int) -> None:
    keys = 40
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    rows = pa.table({"k": np.repeat(np.arange(keys), values), "v": np.arange(keys * values)}, schema=schema)
    found = _circuit(schema, error=error).step(t=rows)["o"].to_arrow()["n"].to_numpy()
    off = math.sqrt(float(np.mean((found / values - 1) ** 2)))
    assert off < 1.5 * error, f"{off:.3f}"


@pytest.mark.long
def test_state_is_bounded() -> None:
    schema = pa.schema([("v", pa.int64())])
    circuit = _circuit(schema, error=0.1, by=())
    sizes = []
    for start in range(0, 400_000, 100_000):
        circuit.step(t=pa.table({"v": np.arange(start, start + 100_000)}))
        for trace in (t for v in circuit.vertices for node in v.nodes for t in node.traces().values()):
            trace.settle()
        sizes.append(sum(len(t.zset()) for v in circuit.vertices for node in v.nodes for t in node.traces().values()))
    assert sizes[-1] < 1.3 * sizes[0] < 8_000


def test_nothing_is_none_and_nulls_are_nothing() -> None:
    circuit = _circuit(pa.schema([("v", pa.int64())]), by=())
    assert circuit.step()["o"].to_arrow()["n"].to_pylist() == [0]
    assert circuit.step(t=pa.table({"v": pa.array([None, None], pa.int64())}))["o"].is_empty


@pytest.mark.parametrize("error", [0, 1, -0.1, 0.001, True, "small"])
def test_errors_that_cannot_be_kept(error: Any) -> None:
    with pytest.raises(hw.InputError, match="error"):
        _circuit(error=error)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(hw.NotFoundError, match="`w`"):
        hw.Circuit().input("t", _SCHEMA).group_by("k").approx_distinct("w", name="n")


def test_a_name_that_a_key_has() -> None:
    with pytest.raises(hw.SchemaError) as raised:
        hw.Circuit().input("t", _SCHEMA).group_by("k").approx_distinct("v", name="k")
    assert raised.value.code == "E1205"
