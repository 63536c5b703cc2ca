"""A recursion goes on from a checkpoint, on any number of shards."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.store import Store

EDGE = pa.schema([("a", pa.int64()), ("b", pa.int64())])


def _reachable(shards: int) -> hw.Circuit:
    circuit = hw.Circuit("reachable", shards=shards)
    edges = circuit.input("edges", EDGE)

    def longer(path: Any, edges: Any) -> Any:
        return edges.plus(path.join(edges, [("b", "a")], suffix="2").select("a", b="b2"))

    circuit.recursive({"path": EDGE}, longer, edges=edges)["path"].output("path")
    return circuit


def _closure(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    found = set(edges)
    while True:
        more = {(a, d) for a, b in found for c, d in edges if b == c} - found
        if not more:
            return found
        found |= more


@pytest.mark.long
@pytest.mark.parametrize("shards", [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_equals_the_closure(tmp_path: Path, shards: tuple[int, int]) -> None:
    rng = random.Random(f"{shards}")
    circuit = _reachable(shards[0])
    edges: set[tuple[int, int]] = set()
    paths: Counter[tuple[int, int]] = Counter()
    with Store(tmp_path / "state") as store:
        for step in range(40):
            if step % 5 == 4:
                circuit.checkpoint(store)
                circuit = _reachable(shards[(step // 5) % 2])
                circuit.restore(store)
            here = {(rng.randrange(7), rng.randrange(7)) for _ in range(3)}
            signs = [-1 if e in edges else 1 for e in here]
            edges ^= here
            rows = {"a": [a for a, _ in here], "b": [b for _, b in here], "_weight": signs}
            for r in circuit.step(edges=pa.table(rows))["path"].to_arrow().to_pylist():
                paths[r["a"], r["b"]] += r["_weight"]
            assert {p: n for p, n in paths.items() if n} == dict.fromkeys(_closure(edges), 1)


def test_another_circuit_is_refused(tmp_path: Path) -> None:
    def built(default: int) -> hw.Circuit:
        circuit = hw.Circuit()
        circuit.input("t", EDGE).over(order="a").lag("b", name="before", default=default).output("o")
        return circuit

    with Store(tmp_path / "state") as store:
        circuit = built(0)
        circuit.step(t=pa.table({"a": [1], "b": [2]}))
        circuit.checkpoint(store)
        with pytest.raises(hw.InputError, match="E1505"):
            built(7).restore(store)
        built(0).restore(store)
