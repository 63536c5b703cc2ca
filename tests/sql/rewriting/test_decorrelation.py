"""Which joins the kinds of subqueries become."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from headwater.sql.nodes import Refused
from headwater.sql.plan import Join, Single
from headwater.sql.rewriting import decorrelated, prepared

from .oracle import connected, differences, read, rows

_TABLES = {
    "t": pa.table({"a": pa.array([1, 2, None, 3, 1], pa.int32()), "b": pa.array([1, None, 3, 4, 1], pa.int32())}),
    "u": pa.table({"k": pa.array([1, 1, None, 7, 3], pa.int32()), "v": pa.array([1, 2, 5, None, 4], pa.int32())}),
    "e": pa.table({"k": pa.array([], pa.int32()), "v": pa.array([], pa.int32())}),
}


def _joins(text: str) -> list[str]:
    return [n.kind for n in decorrelated(read(text, _TABLES)).walk() if isinstance(n, Join)]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.a)", ["semi"]),
        ("SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.a AND u.v > t.b)", ["anti"]),
        ("SELECT a FROM t WHERE a IN (SELECT k FROM u)", ["semi"]),
        ("SELECT a FROM t WHERE a NOT IN (SELECT k FROM u WHERE u.v = t.b)", ["anti", "left"]),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u)", ["cross"]),
        ("SELECT a, (SELECT count(*) FROM u WHERE u.k = t.a) FROM t", ["left"]),
        ("SELECT a, (SELECT max(v) FROM u) FROM t", ["cross"]),
        ("SELECT a, (SELECT t.b + 1) FROM t", []),
        ("SELECT a FROM t WHERE b = 1 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.a)", ["left"]),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.a ORDER BY v LIMIT 3)", ["semi"]),
        ("SELECT a FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.k = t.a)", []),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.a LIMIT 0)", []),
        ("SELECT a FROM t WHERE EXISTS (SELECT v FROM u WHERE u.k = t.a GROUP BY v)", ["semi"]),
    ],
)
def test_the_joins(text: str, kinds: list[str]) -> None:
    assert _joins(text) == kinds
    assert not differences(text, _TABLES, {"decorrelated": decorrelated, "prepared": prepared})


def test_not_in_looks_values_up() -> None:
    text = "SELECT a FROM t WHERE a NOT IN (SELECT k FROM u)"
    plan = decorrelated(read(text, _TABLES))
    anti = [n for n in plan.walk() if isinstance(n, Join) and n.kind == "anti"]
    assert [n.line() for n in anti] == ["anti join on (a#1 = k#3)"]


def test_columns_that_are_never_null_need_no_counts() -> None:
    schema = {"t": pa.schema([pa.field("a", pa.int32(), nullable=False)])}
    tables = {"t": pa.table({"a": pa.array([1], pa.int32())}, schema=schema["t"])}
    plan = decorrelated(read("SELECT a FROM t WHERE a NOT IN (SELECT a FROM t AS u)", tables))
    assert [n.kind for n in plan.walk() if isinstance(n, Join)] == ["anti"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, (SELECT v FROM u WHERE u.k = t.a) FROM t",
        "SELECT a FROM t WHERE b = (SELECT v FROM u WHERE u.k = t.a)",
        "SELECT a, (SELECT v FROM u) FROM t",
        "SELECT a, (SELECT max(v) FROM u WHERE u.k = t.a GROUP BY v) FROM t",
    ],
)
def test_a_second_row_is_an_error(text: str) -> None:
    plan = read(text, _TABLES)
    for rule in (decorrelated, prepared):
        changed = rule(plan)
        assert any(isinstance(n, Single) for n in changed.walk())
        with connected(_TABLES) as con, pytest.raises(duckdb.Error, match="more than one row"):
            rows(changed, con)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, (SELECT v FROM u WHERE u.k = t.a) FROM t WHERE a > 1",
        "SELECT a FROM t WHERE b = (SELECT v FROM u WHERE u.k = t.a) AND a > 1",
        "SELECT a, (SELECT DISTINCT v FROM u WHERE u.k = t.a AND v > 1) FROM t",
        "SELECT a, (SELECT v FROM e WHERE e.k = t.a) FROM t",
        "SELECT a, (SELECT v FROM e) FROM t",
    ],
)
def test_a_second_row_for_nobody_is_none(text: str) -> None:
    assert not differences(text, _TABLES, {"decorrelated": decorrelated, "prepared": prepared})


def test_a_text_that_is_read_twice_is_computed_under_two_names() -> None:
    text = "SELECT (SELECT max(v) FROM u WHERE u.k = t.a) AS m, m + 1 AS n FROM t WHERE a > (SELECT min(v) FROM u WHERE u.k = t.a)"
    assert not differences(text, _TABLES, {"decorrelated": decorrelated, "prepared": prepared})


def test_both_sides_of_an_outer_join_cannot_be_read() -> None:
    text = "SELECT t.a FROM t LEFT JOIN u ON t.a = u.k AND EXISTS (SELECT 1 FROM u AS w WHERE w.v = t.b AND w.k = u.k)"
    with pytest.raises(Refused, match="reads both sides"):
        decorrelated(read(text, _TABLES))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE (SELECT t.b) <=> a AND (SELECT t.b) != 7",
        "SELECT a FROM t WHERE a IN (SELECT t.b FROM u WHERE u.k = t.a)",
        "SELECT a FROM t WHERE a NOT IN (SELECT t.b FROM u WHERE u.k >= t.a)",
        "SELECT a, (SELECT max(q) FROM (SELECT t.b AS q FROM u WHERE u.k = t.a)) FROM t",
        "SELECT * FROM t, LATERAL (SELECT t.a, u.v FROM u WHERE u.k = t.a)",
        "SELECT * FROM t, LATERAL (SELECT t.a)",
    ],
)
def test_columns_of_the_query_around_may_be_handed_on(text: str) -> None:
    assert not differences(text, _TABLES, {"decorrelated": decorrelated, "prepared": prepared})
