"""A total order wherever rows are counted: LIMIT, and the functions that number rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build, determined
from headwater.sql.query import parse_query
from headwater.testing.views import SCHEMAS

from .views import circuit_of, holds, labels, plan_of


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t ORDER BY k LIMIT 3",
        "SELECT s, v FROM t ORDER BY v DESC, length(s) NULLS LAST LIMIT 2 OFFSET 1",
        "SELECT s FROM t ORDER BY d LIMIT 0",
        "SELECT s FROM t ORDER BY d OFFSET 2",
        "SELECT DISTINCT k FROM t ORDER BY k DESC LIMIT 2",
        "SELECT k, sum(d) AS x FROM t GROUP BY k ORDER BY x DESC LIMIT 2",
        "SELECT k FROM (SELECT k, s FROM t ORDER BY s LIMIT 4) WHERE k > 0",
        "SELECT k, (SELECT u.s FROM u ORDER BY u.n LIMIT 1) AS x FROM t",
        "SELECT count(*) AS n FROM t LIMIT 1",
        "SELECT s FROM t ORDER BY struct(k, s) DESC LIMIT 2",
    ],
)
def test_the_first_rows_equal_a_recomputation(text: str) -> None:
    holds(text)


def test_to_determine_twice_changes_nothing() -> None:
    once = determined(plan_of("SELECT k, row_number() OVER (PARTITION BY s ORDER BY v) AS n FROM t ORDER BY n LIMIT 3"))
    assert determined(once) == once


def test_peers_stay_peers() -> None:
    plan = plan_of("SELECT rank() OVER (ORDER BY k) AS n FROM t")
    assert determined(plan) == plan


def test_arrays_and_maps_do_not_order() -> None:
    schema = pa.schema([("a", pa.int32()), ("xs", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32()))])
    plan = determined(parse_query("SELECT * FROM t ORDER BY a LIMIT 1", lambda *_: schema))
    assert "sort a#1 asc nulls first\n" in plan.dump()
    with pytest.raises(UnsupportedError, match="have no order"):
        circuit_of("SELECT xs FROM w ORDER BY xs LIMIT 1")


def test_an_order_without_a_limit_is_a_note() -> None:
    circuit = circuit_of("SELECT k FROM t ORDER BY k")
    assert "left out, rows have no order" in circuit.explain()
    assert "top" not in labels(circuit)


def test_a_limit_without_an_order_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="without ORDER BY"):
        circuit_of("SELECT k FROM t LIMIT 3")


def test_any_rows_are_the_least_ones() -> None:
    circuit = Circuit()
    stream = circuit.input("t", SCHEMAS["t"])
    build(circuit, plan_of("SELECT k, s FROM t LIMIT 2"), {"t": stream}, any_rows=True).output("view")
    rows = pa.Table.from_pylist([{"k": k} for k in (3, 1, 2)], schema=SCHEMAS["t"])
    assert [r["k"] for r in circuit.step(t=rows)["view"].to_arrow().to_pylist()] == [1, 2]


@pytest.mark.long
def test_a_query_takes_the_zero_that_a_circuit_takes() -> None:
    # Rows that differ in the sign of a zero alone: SQL takes them for equal, and one of them is chosen.
    holds("SELECT v, e FROM w ORDER BY n IS NULL LIMIT 3", steps=40)
    holds("SELECT k, v, row_number() OVER (PARTITION BY v ORDER BY k IS NULL) AS n FROM w", steps=40)
    holds("SELECT k, v, lag(v) OVER (ORDER BY v) AS a FROM t", steps=40)


@pytest.mark.long
def test_rows_that_are_the_same_are_counted_alike_by_all_windows() -> None:
    holds(
        "SELECT k, g, lag(k, 2) OVER (PARTITION BY g ORDER BY g) AS a,"
        " sum(k) OVER (PARTITION BY k IS NULL ORDER BY 1 ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS b,"
        " row_number() OVER (ORDER BY k DESC) AS c, ntile(3) OVER (ORDER BY k DESC) AS d, rank() OVER (ORDER BY k DESC) AS e"
        " FROM (SELECT k, g FROM u)",
        steps=40,
    )


def test_the_number_of_a_row_goes_with_what_its_neighbours_say() -> None:
    plan = plan_of("SELECT lag(k) OVER (ORDER BY k DESC) AS a, row_number() OVER (ORDER BY k DESC) AS n FROM u")
    shown = determined(plan).dump()
    assert shown.count("window ") == 2
    assert shown.index("lag") < shown.index("row_number")  # what is computed first stands below
    assert determined(determined(plan)) == determined(plan)
