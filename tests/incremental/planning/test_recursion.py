"""WITH RECURSIVE as a fixpoint, against the same recursion in Python."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from headwater.base.errors import UnsupportedError
from headwater.testing.circuits import Integral

from .views import circuit_of

EDGES = {"e": pa.schema([("a", pa.int32()), ("b", pa.int32())])}


def _brute(edges: Counter[tuple[int, int]], most: int, *, every: bool) -> Counter[tuple[int, int, int]]:
    last = Counter({(a, b, 1): n for (a, b), n in edges.items()})
    if not every:
        last = Counter(dict.fromkeys(last, 1))
    found = Counter(last)
    while last:
        new: Counter[tuple[int, int, int]] = Counter()
        for (a, b, n), times in last.items():
            for (x, y), more in edges.items():
                if b == x and n < most:
                    new[a, y, n + 1] += times * more
        if not every:
            new = Counter(dict.fromkeys((r for r in new if r not in found), 1))
        found += new
        last = new
    return found


@pytest.mark.parametrize("word", ["UNION ALL", "UNION"])
def test_paths_equal_brute_force(word: str) -> None:
    text = (
        f"WITH RECURSIVE p(a, b, n) AS (SELECT a, b, 1 FROM e {word} "
        "SELECT p.a, e.b, p.n + 1 FROM p JOIN e ON p.b = e.a WHERE p.n < 4) SELECT * FROM p"
    )
    circuit = circuit_of(text, EDGES)
    rng = random.Random(word)
    edges: Counter[tuple[int, int]] = Counter()
    integral = Integral()
    for _ in range(25):
        rows, weights = [], []
        for _ in range(rng.randint(0, 3)):
            gone = edges and rng.random() < 0.45
            row = rng.choice(list(edges)) if gone else (rng.randint(0, 4), rng.randint(0, 4))
            weights.append(-1 if gone else 1)
            rows.append(row)
            edges[row] += weights[-1]
            edges += Counter()
        change = pa.table(
            {"a": pa.array([a for a, _ in rows], pa.int32()), "b": pa.array([b for _, b in rows], pa.int32()),
             "_weight": pa.array(weights, pa.int64())}
        )  # fmt: skip
        integral.add(circuit.step(e=change)["view"].to_arrow())
        assert integral.rows == _brute(edges, 4, every=word == "UNION ALL")


def test_a_cycle_comes_to_an_end() -> None:
    text = "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM e UNION SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) SELECT * FROM r"
    circuit = circuit_of(text, EDGES)
    rows = pa.table({"a": [1, 2, 3], "b": [2, 3, 1]}, schema=EDGES["e"])
    assert circuit.step(e=rows)["view"].to_arrow().num_rows == 9


def test_two_recursions_of_the_same_tables_have_states_of_their_own() -> None:
    text = "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM e UNION SELECT r.a, e.b FROM r JOIN e ON {}) SELECT * FROM r"
    one, two = (circuit_of(text.format(on), EDGES).vertices[-1].node.fingerprint for on in ("r.b = e.a", "r.a = e.b"))
    assert one != two


def test_a_step_that_is_not_linear_is_refused() -> None:
    text = "WITH RECURSIVE r(a) AS (SELECT a FROM e UNION SELECT x.a + 1 FROM r AS x JOIN r AS y ON x.a = y.a WHERE x.a < 3) SELECT * FROM r"
    with pytest.raises(UnsupportedError, match="linear"):
        circuit_of(text, EDGES)
