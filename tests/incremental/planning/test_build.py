"""From a plan to a circuit: names, sharing, pruning, and pictures that lead back to the SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import NotFoundError, SchemaError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.planning import build
from headwater.testing.views import SCHEMAS

from .views import circuit_of, holds, labels, plan_of


def test_columns_have_the_names_of_the_query() -> None:
    circuit = circuit_of("SELECT s AS b, k AS a, k + 1, count(*) AS n FROM t GROUP BY s, k")
    assert circuit.outputs["view"].layout.names == ["b", "a", "(k + 1)", "n"]


@pytest.mark.parametrize("items", ["k, k", "k AS a, s AS A"])
def test_names_that_clash_are_refused(items: str) -> None:
    with pytest.raises(SchemaError, match="clash"):
        circuit_of(f"SELECT {items} FROM t")


def test_a_missing_input_and_a_wrong_one_are_told() -> None:
    circuit = Circuit()
    with pytest.raises(NotFoundError, match="no input `t`"):
        build(circuit, plan_of("SELECT k FROM t"), {})
    other = circuit.input("other", pa.schema([("k", pa.string())]))
    with pytest.raises(SchemaError):
        build(circuit, plan_of("SELECT k FROM t"), {"t": other})
    with pytest.raises(NotFoundError, match="`s`"):
        build(circuit, plan_of("SELECT s FROM t"), {"t": other})


def test_a_common_table_is_built_once() -> None:
    text = "WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT x.k, y.n FROM c AS x JOIN c AS y ON x.k = y.n"
    assert labels(circuit_of(text)).count("aggregate") == 1
    holds(
        "WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT x.k AS a, y.k AS b FROM c AS x JOIN c AS y ON x.k = y.n"
    )


def test_the_same_subquery_written_twice_is_built_once() -> None:
    part = "(SELECT k, max(s) AS m FROM t WHERE v > 0 GROUP BY k)"
    circuit = circuit_of(f"SELECT a.k, b.m FROM {part} AS a JOIN {part} AS b ON a.k = b.k")
    assert labels(circuit).count("aggregate") == 1


def test_only_the_columns_that_are_read_flow() -> None:
    circuit = circuit_of("SELECT k FROM (SELECT k, s, v, upper(s) AS x FROM t) WHERE v > 0")
    assert [v.layout.names for v in circuit.vertices if v.node.label == "filter"] == [["k", "v"]]
    assert "upper" not in circuit.explain()


def test_every_operator_says_which_part_of_the_query_it_is() -> None:
    circuit = circuit_of(
        "SELECT t.k, count(*) AS n FROM t JOIN u ON t.k = u.k AND t.d < u.d WHERE t.s LIKE 'a%' GROUP BY t.k"
    )
    text = circuit.explain()
    for part in ("inner join on", "(d < d 2)", "like", "aggregate by [k]"):
        assert part in text
    assert "#" not in text
    assert all(v.sql for v in circuit.vertices if v.node.kind != "source")
    sets = circuit_of("SELECT k FROM t UNION SELECT k FROM u EXCEPT SELECT DISTINCT k FROM t WHERE v > 1")
    assert all(v.sql for v in sets.vertices if v.node.kind != "source")
    assert {"distinct", "except"} <= {word for v in sets.vertices for word in v.sql.split()}


def test_a_part_that_stays_keeps_its_name_whatever_is_around_it() -> None:
    """Numbers of columns are given out anew for each text; the names of states do not depend on them."""
    inner = "SELECT k, sum(d) AS total FROM t WHERE v > 0 GROUP BY k"

    def states(text: str) -> set[str]:
        circuit = circuit_of(text)
        names = fingerprints(circuit)
        return {names[v.id] for v in circuit.vertices if v.node.traces()}

    alone = states(inner)
    around = states(f"SELECT u.s, x.total FROM u JOIN ({inner}) AS x ON u.k = x.k")
    assert alone
    assert alone <= around


def test_inputs_find_their_columns_without_case() -> None:
    circuit = Circuit()
    stream = circuit.input("t", pa.schema([f.with_name(f.name.upper()) for f in SCHEMAS["t"]]))
    build(circuit, plan_of("SELECT k FROM t"), {"t": stream}).output("o")
    assert circuit.outputs["o"].layout.names == ["k"]


def test_values_of_all_types_pass() -> None:
    schema = pa.schema(
        [
            ("i", pa.int8()),
            ("b", pa.binary()),
            ("t", pa.timestamp("us")),
            ("z", pa.timestamp("us", tz="UTC")),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("s", pa.struct([("x", pa.list_(pa.string()))])),
            ("d", pa.decimal128(38, 10)),
        ]
    )
    circuit = circuit_of("SELECT x.*, y.t AS other FROM x JOIN x AS y ON x.b = y.b AND x.t <=> y.t", {"x": schema})
    row = {
        "i": -1, "b": b"\0\xff", "t": None, "z": None, "m": [("ü", 1)], "s": {"x": ["a", None]}, "d": None,
    }  # fmt: skip
    found = circuit.step(x=pa.Table.from_pylist([row], schema=schema))["view"].to_arrow().to_pylist()
    assert found == [{**row, "other": None, "_weight": 1}]
