"""-0.0 and 0.0 are one key, wherever rows of a key come together."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headwater as hw

SCHEMA = pa.schema([("k", pa.float64()), ("x", pa.int64())])
ROWS = pa.table({"k": [0.0, -0.0, 1.0], "x": [1, 2, 3]})


def _of_zeros(stream: Any, column: str) -> list[Any]:
    circuit = stream.circuit
    stream.output("o")
    found = [(r["x"], r[column]) for r in circuit.step(t=ROWS)["o"].to_arrow().to_pylist() if r["k"] == 0]
    return [value for _, value in sorted(found)]


@pytest.mark.parametrize("shards", [1, 3])
def test_in_order_and_in_time(shards: int) -> None:
    def rows() -> Any:
        return hw.Circuit(shards=shards).input("t", SCHEMA)

    assert _of_zeros(rows().over("k", order="x").rank(n="row_number"), "n") == [1, 2]
    assert _of_zeros(rows().over("k", order="x").lag("x", name="before"), "before") == [None, 1]
    assert _of_zeros(rows().over("k", order="x").agg(rows=(None, 0), n="sum(x)"), "n") == [1, 3]
    assert _of_zeros(rows().over("k", order="x desc").top(1), "x") == [2]
    assert _of_zeros(rows().session("x", 5, by="k"), "session_start") == [1, 1]
    t = rows()
    assert _of_zeros(t.join_asof(t, "x", by="k", strict=True, suffix="_before"), "x_before") == [None, 1]
    t = rows()
    assert _of_zeros(t.join_range(t, "x", by="k", below=1, suffix="_near"), "x_near") == [1, 1, 2]
    t = rows().with_columns(low="x - 1")
    assert _of_zeros(t.join_between(t, ("low", "x"), "x", by="k", suffix="_in"), "x_in") == [1, 1, 2]


def test_as_the_key_of_a_table() -> None:
    circuit = hw.Circuit()
    circuit.input("t", SCHEMA, key="k").output("t")
    circuit.step(t=pa.table({"k": [0.0], "x": [1]}))
    changed = circuit.step(t=pa.table({"k": [-0.0], "x": [2]}))["t"].to_arrow().to_pylist()
    assert [(r["x"], r["_weight"]) for r in changed] == [(1, -1), (2, 1)]
    gone = circuit.step(t=pa.table({"k": [-0.0], "x": [2], "_weight": [-1]}))["t"].to_arrow().to_pylist()
    assert [(r["x"], r["_weight"]) for r in gone] == [(2, -1)]


def test_in_a_recursion() -> None:
    edge = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    circuit = hw.Circuit()
    edges = circuit.input("edges", edge)

    def longer(path: Any, edges: Any) -> Any:
        return edges.plus(path.join(edges, [("b", "a")], suffix="2").select("a", b="b2"))

    circuit.recursive({"path": edge}, longer, edges=edges)["path"].output("path")
    circuit.step(edges=pa.table({"a": [0.0, 1.0], "b": [1.0, -0.0]}))
    found = circuit.step(edges=pa.table({"a": [-0.0], "b": [5.0]}))["path"].to_arrow().to_pylist()
    assert sorted((r["a"], r["b"], r["_weight"]) for r in found) == [(0.0, 5.0, 1), (1.0, 5.0, 1)]


def test_joins_on_floats_share_a_trace() -> None:
    circuit = hw.Circuit()
    t, u = circuit.input("t", SCHEMA), circuit.input("u", SCHEMA)
    t.join(u, "k").output("one")
    count = len(circuit.vertices)
    t.join(u, "k", where="x < x_right").output("two")
    assert all(v.node.kind != "arrange" for v in circuit.vertices[count:])
