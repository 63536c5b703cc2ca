"""A join with one row of which only truths are wanted is not done again as long as they hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from .views import circuit_of, holds, labels

SCHEMAS = {"a": pa.schema([("x", pa.int32())]), "b": pa.schema([("y", pa.int32())])}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, s FROM t WHERE s NOT IN (SELECT s FROM u)",
        "SELECT k, s FROM t WHERE (k, s) NOT IN (SELECT k, s FROM u)",
        "SELECT k FROM t WHERE k NOT IN (SELECT k FROM u) AND v > 0",
        "SELECT k FROM t, (SELECT count(*) AS n, sum(n) AS m FROM u) AS x WHERE x.n > 3 OR (x.m > 2 AND t.s = 'a')",
        "SELECT k FROM t, (SELECT max(k) AS n FROM u) AS x WHERE t.k < x.n",
    ],
)
def test_the_rows_equal_a_recomputation(text: str) -> None:
    holds(text)


def test_what_leaves_the_truths_as_they_are_costs_nothing() -> None:
    circuit = circuit_of("SELECT x FROM a WHERE x NOT IN (SELECT y FROM b)", SCHEMAS)
    assert "distinct" in labels(circuit)
    circuit.step(a=pa.table({"x": list(range(1000))}, schema=SCHEMAS["a"]), b=pa.table({"y": [1]}, schema=SCHEMAS["b"]))
    before = {v.id: v.figures.rows_out for v in circuit.vertices}
    found = circuit.step(b=pa.table({"y": [5]}, schema=SCHEMAS["b"]))["view"].to_arrow().to_pylist()
    assert found == [{"x": 5, "_weight": -1}]
    assert max(v.figures.rows_out - before[v.id] for v in circuit.vertices) < 10
