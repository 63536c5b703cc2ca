"""Recursion with deletes: closures, components and shortest paths equal a search from scratch after every step."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.testing.circuits import Integral

STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "30"))
EDGE = pa.schema([("a", pa.int64()), ("b", pa.int64())])
ROAD = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("w", pa.int64())])
LABEL = pa.schema([("node", pa.int64()), ("label", pa.int64())])
Row = tuple[Any, ...]


def play(
    circuit: hw.Circuit,
    output: str,
    draw: Callable[[random.Random], Row],
    solve: Callable[[set[Row]], set[Row]],
    *,
    seed: int,
) -> None:
    rng = random.Random(seed)
    edges: Counter[Row] = Counter()
    integral = Integral()
    schema = circuit.inputs["edges"].layout.schema
    for step in range(STEPS):
        rows = []
        for _ in range(rng.randint(0, 4)):
            if edges and rng.random() < 0.5:
                row, weight = rng.choice(list(edges)), -1
            else:
                row, weight = draw(rng), 1
            edges[row] += weight
            if not edges[row]:
                del edges[row]
            rows.append((*row, weight))
        names = [*schema.names, "_weight"]
        integral.add(
            circuit.step(edges=pa.table({n: pa.array([r[i] for r in rows], pa.int64()) for i, n in enumerate(names)}))[
                output
            ].to_arrow()
        )
        assert dict(integral.rows) == dict.fromkeys(solve(set(edges)), 1), f"step {step}"


def closure(edges: set[Row]) -> set[Row]:
    following = defaultdict(set)
    for a, b in edges:
        following[a].add(b)
    found = set()
    for start in list(following):
        todo = list(following[start])
        while todo:
            node = todo.pop()
            if (start, node) not in found:
                found.add((start, node))
                todo += following.get(node, ())
    return found


def shortest(roads: set[Row]) -> set[Row]:
    best: dict[tuple[int, int], int] = {}
    for a, b, w in roads:
        best[a, b] = min(w, best.get((a, b), w))
    nodes = {x for a, b, _ in roads for x in (a, b)}
    for k in nodes:
        for i in nodes:
            for j in nodes:
                if (i, k) in best and (k, j) in best:
                    best[i, j] = min(best.get((i, j), 10**9), best[i, k] + best[k, j])
    return {(a, b, w) for (a, b), w in best.items()}


def components(edges: set[Row]) -> set[Row]:
    label = {x: x for e in edges for x in e}
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            least = min(label[a], label[b])
            if label[a] != least or label[b] != least:
                label[a] = label[b] = least
                changed = True
    return set(label.items())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shards", [1, 2])
def test_transitive_closure(seed: int, shards: int) -> None:
    c = hw.Circuit(shards=shards)
    edges = c.input("edges", EDGE)

    def longer(path: Any, edges: Any) -> Any:
        return edges.plus(path.join(edges, [("b", "a")], suffix="2").select("a", b="b2"))

    c.recursive({"path": EDGE}, longer, edges=edges)["path"].output("path")
    play(c, "path", lambda r: (r.randrange(9), r.randrange(9)), closure, seed=seed)


@pytest.mark.parametrize("seed", range(2))
def test_shortest_paths(seed: int) -> None:
    c = hw.Circuit()
    edges = c.input("edges", ROAD)

    def nearer(path: Any, edges: Any) -> Any:
        longer = path.join(edges, [("b", "a")], suffix="2").select("a", b="b2", w="w + w2")
        return edges.plus(longer).group_by("a", "b").agg(w="min(w)")

    c.recursive({"path": ROAD}, nearer, edges=edges)["path"].output("path")
    play(c, "path", lambda r: (r.randrange(7), r.randrange(7), r.randint(1, 9)), shortest, seed=seed)


@pytest.mark.parametrize("seed", range(2))
def test_connected_components(seed: int) -> None:
    c = hw.Circuit()
    edges = c.input("edges", EDGE)
    both = edges.plus(edges.select(a="b", b="a"))
    own = both.select(node="a", label="a").distinct()

    def spread(component: Any, both: Any, own: Any) -> Any:
        reached = component.join(both, [("node", "a")]).select(node="b", label="label")
        return own.plus(reached).group_by("node").agg(label="min(label)")

    c.recursive({"component": LABEL}, spread, both=both, own=own)["component"].output("component")
    play(c, "component", lambda r: (r.randrange(10), r.randrange(10)), components, seed=seed)


def test_mutual_recursion() -> None:
    """Who is reached by an even number of steps, and who by an odd one."""
    c = hw.Circuit()
    edges = c.input("edges", EDGE)

    def walk(even: Any, odd: Any, edges: Any) -> Any:
        def on(some: Any) -> Any:
            return some.join(edges, [("b", "a")], suffix="2").select("a", b="b2")

        return {"odd": edges.plus(on(even)), "even": on(odd)}

    found = c.recursive({"even": EDGE, "odd": EDGE}, walk, edges=edges)
    found["even"].output("even")
    found["odd"].output("odd")

    def parity(edges: set[Row], wanted: int) -> set[Row]:
        doubled = {((a, p), (b, 1 - p)) for a, b in edges for p in (0, 1)}
        return {(a, b) for (a, p), (b, q) in closure(doubled) if p == 0 and q == wanted}

    rng = random.Random(5)
    integrals = {"even": Integral(), "odd": Integral()}
    edges_now: Counter[Row] = Counter()
    for _ in range(STEPS):
        row, weight = (rng.randrange(6), rng.randrange(6)), 1
        if edges_now and rng.random() < 0.45:
            row, weight = rng.choice(list(edges_now)), -1
        edges_now[row] += weight
        if not edges_now[row]:
            del edges_now[row]
        outputs = c.step(edges=pa.table({"a": [row[0]], "b": [row[1]], "_weight": [weight]}))
        for name, which in (("even", 0), ("odd", 1)):
            integrals[name].add(outputs[name].to_arrow())
            assert dict(integrals[name].rows) == dict.fromkeys(parity(set(edges_now), which), 1)


def test_a_recursion_without_end_is_an_error_and_changes_nothing() -> None:
    c = hw.Circuit()
    start = c.input("edges", EDGE)
    c.recursive({"n": EDGE}, lambda n, start: start.plus(n.select(a="a + 1", b="b")), most=20, start=start)["n"].output(
        "n"
    )
    with pytest.raises(hw.ExpressionError, match="E1312") as raised:
        c.step(edges=pa.table({"a": [1], "b": [1]}))
    assert raised.value.hint
    assert len(c.step({})["n"].to_arrow()) == 0


def test_what_depends_on_the_step_is_refused_inside() -> None:
    c = hw.Circuit()
    start = c.input("edges", EDGE)
    with pytest.raises(hw.UnsupportedError, match="delay inside a recursion"):
        c.recursive({"n": EDGE}, lambda n, start: start.plus(n.delay()), start=start)
