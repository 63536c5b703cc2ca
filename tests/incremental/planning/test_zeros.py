"""-0.0 and NaN as keys, plain and inside nested values."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build
from headwater.incremental.planning.zeros import zero_free
from headwater.sql.nodes import AggregateCall
from headwater.sql.plan import Aggregate, Attribute, Distinct, Named, Plan, Scan
from headwater.sql.types import LONG

from .views import holds

NESTED = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.float32()))])
ROWS = [{"x": 0.0, "y": [0.0]}, {"x": -0.0, "y": [-0.0]}, {"x": math.nan, "y": None}, {"x": math.nan, "y": None}, None]


@pytest.mark.long
def test_zeros_and_nans_of_floats_are_one_key() -> None:
    holds("SELECT v, count(*) AS n FROM t GROUP BY v")
    holds("SELECT t.v AS a, w.v AS b FROM t JOIN w ON t.v = w.v")
    holds("SELECT t.v AS a, w.v AS b FROM t LEFT JOIN w ON t.v <=> w.v AND t.k = w.k")
    holds("SELECT v FROM t INTERSECT SELECT v FROM w")


def test_inside_nested_values_too() -> None:
    made = zero_free(pa.array(ROWS, NESTED)).to_pylist()
    assert [math.copysign(1, r["x"]) for r in made[:2]] == [1, 1]
    assert [math.copysign(1, r["y"][0]) for r in made[:2]] == [1, 1]
    assert made[4] is None
    maps = pa.array([[("k", -0.0)], None, []], pa.map_(pa.string(), pa.float64()))
    assert [str(m) for m in zero_free(maps).to_pylist()] == ["[('k', 0.0)]", "None", "[]"]


def _counts(plan: Plan) -> list[int]:
    circuit = Circuit()
    build(circuit, plan, {"t": circuit.input("t", pa.schema([("a", NESTED)]))}).output("o")
    table = circuit.step(t=pa.table({"a": pa.array(ROWS, NESTED)}))["o"].to_arrow()
    return sorted(table["n"].to_pylist()) if "n" in table.column_names else [table.num_rows]


def test_groups_and_distinct_rows_of_nested_values() -> None:
    key = Attribute("a", "a#1", NESTED)
    scan = Scan("t", None, None, (key,))
    count = Named(Attribute("n", "n#2", LONG, nullable=False), AggregateCall("count", (), LONG))
    assert _counts(Aggregate(scan, (Named(key, key.column),), (count,))) == [1, 2, 2]
    assert _counts(Distinct(scan)) == [3]
