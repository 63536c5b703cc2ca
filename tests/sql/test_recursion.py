"""WITH RECURSIVE on DuckDB; that the rows are Spark's is told by rewriting/test_as_spark."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

from headwater.base.errors import InputError
from headwater.sql.datafusion import to_datafusion
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.lineage import lineage
from headwater.sql.nodes import Refused
from headwater.sql.plan import Recursion, With
from headwater.sql.query import parse_query
from headwater.sql.rewriting import prepared

_EDGES = pa.schema([("a", pa.int32()), ("b", pa.int32())])


def _rows(text: str, edges: list[tuple[int, int]] = ()) -> list[tuple[object, ...]]:  # type: ignore[assignment]
    table = pa.table(
        {"a": pa.array([a for a, _ in edges], pa.int32()), "b": pa.array([b for _, b in edges], pa.int32())}
    )
    plan = parse_query(text, lambda *_: _EDGES)
    with duckdb.connect(":memory:") as con:
        con.register("edge", table)
        found = sorted(con.sql(to_duckdb(plan)).fetchall())
        assert sorted(con.sql(to_duckdb(prepared(plan))).fetchall()) == found
    return found


@pytest.mark.parametrize("seed", range(5))
def test_reachable_nodes_of_any_graph(seed: int) -> None:
    dice = random.Random(seed)
    edges = [(dice.randrange(8), dice.randrange(8)) for _ in range(12)]
    text = """
        WITH RECURSIVE path(x, y) AS (
            SELECT a, b FROM edge UNION SELECT path.x, edge.b FROM path JOIN edge ON path.y = edge.a
        ) SELECT x, y FROM path
    """
    known = set(edges)
    while more := {(x, b) for x, y in known for a, b in edges if y == a} - known:
        known |= more
    assert _rows(text, edges) == sorted(known)


def test_every_way_counts_with_union_all() -> None:
    text = """
        WITH RECURSIVE way(y, n) AS (
            SELECT 0, 0 UNION ALL SELECT edge.b, n + 1 FROM way JOIN edge ON way.y = edge.a
        ) SELECT y, n FROM way
    """
    assert _rows(text, [(0, 1), (0, 2), (1, 3), (2, 3)]) == [(0, 0), (1, 1), (2, 1), (3, 2), (3, 2)]


def test_the_plan() -> None:
    text = "WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (SELECT 1L UNION ALL SELECT a FROM r, edge WHERE n = b) SELECT * FROM r"
    plan = parse_query(text, lambda *_: _EDGES)
    assert isinstance(plan, With)
    ((name, recursion),) = plan.definitions
    assert isinstance(recursion, Recursion)
    assert (recursion.name, recursion.every, recursion.levels) == (name, True, 9)
    assert [a.dtype for a in recursion.step.output] == [pa.int64()]


@pytest.mark.parametrize("levels", ["", " MAX RECURSION LEVEL 100"])
def test_an_endless_one_is_stopped(levels: str) -> None:
    text = f"WITH RECURSIVE r(n){levels} AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"
    with pytest.raises(duckdb.Error, match="more levels"):
        _rows(text)
    assert _rows(text.replace("FROM r)", "FROM r WHERE n < 100)")) == [(100,)]


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ("SELECT 1 UNION ALL SELECT n + 1L FROM r", "is int in the base and bigint in the step"),
        ("SELECT 1 UNION ALL SELECT n, n FROM r", "gives 2 columns, its base 1"),
        ("SELECT n FROM r UNION ALL SELECT 1", "another form"),
        ("SELECT 1 EXCEPT SELECT n FROM r", "another form"),
        ("SELECT 1 UNION ALL SELECT n FROM r LIMIT 3", "ORDER BY or LIMIT of its own"),
        ("SELECT 1 UNION ALL SELECT max(n) FROM r", "its own rows"),
        ("SELECT 1 UNION ALL SELECT a FROM edge LEFT JOIN r ON n = a", "its own rows"),
    ],
)
def test_refused(definition: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_query(f"WITH RECURSIVE r(n) AS ({definition}) SELECT * FROM r", lambda *_: _EDGES)


def test_a_level_is_a_number_behind_a_definition() -> None:
    for text in (
        "WITH RECURSIVE r(n) MAX RECURSION LEVEL x AS (SELECT 1) SELECT * FROM r",
        "SELECT * FROM edge AS e MAX RECURSION LEVEL 3",
    ):
        with pytest.raises(InputError):
            parse_query(text, lambda *_: _EDGES)


def test_columns_come_from_all_that_a_step_makes_of_them() -> None:
    text = "WITH RECURSIVE r(x, y) AS (SELECT a, b FROM edge UNION ALL SELECT y, x FROM r) SELECT x FROM r"
    (column,) = lineage(parse_query(text, lambda *_: _EDGES)).columns
    assert sorted(map(str, column.sources)) == ["edge.a", "edge.b"]


def test_datafusion_says_no() -> None:
    for text in (
        "WITH RECURSIVE r(x) AS (SELECT a FROM edge UNION ALL SELECT x FROM r) SELECT x FROM r",
        "SELECT * FROM edge, LATERAL (SELECT edge.a + 1 AS x)",
    ):
        with pytest.raises(Refused, match="DataFusion"):
            to_datafusion(parse_query(text, lambda *_: _EDGES))
