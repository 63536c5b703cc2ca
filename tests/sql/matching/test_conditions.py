"""How conditions are computed does not show: beforehand, by code along the way, or by Python; and errors are not early."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from tests.sql.matching.histories import case, rows
from tests.sql.matching.test_plain_matcher import matcher_of, table_for

from headwater.base.errors import ExpressionError
from headwater.sql.matching import code, machine
from headwater.sql.matching.conditions import NO_CODE, PYTHON


def spans(sql: str) -> list[tuple[int, int]]:
    return matcher_of(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS id {sql})").conditions.spans


def found(sql: str, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    matcher = matcher_of(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts {sql})")
    names = [a.name for a in matcher.match.output]
    answer: list[dict[str, Any]] = matcher.run(table_for(matcher, given)).rename_columns(names).to_pylist()
    return answer


def one(**values: Any) -> dict[str, Any]:
    return {"g": None, "ts": 0, "id": 0, "x": None, "s": None, "d": None} | values


def in_a_row(*values: int | None) -> list[dict[str, Any]]:
    return [one(ts=at, id=at, x=value) for at, value in enumerate(values)]


@pytest.mark.parametrize(
    "condition",
    ["x > 1", "A.x > PREV(A.x)", "LAST(x) < NEXT(x, 2)", "CLASSIFIER() = 'A'", "x IS NULL OR upper(s) LIKE 'A%'"],
)
def test_what_is_of_the_row_is_computed_beforehand(condition: str) -> None:
    assert spans(f"PATTERN (A+) DEFINE A AS {condition}") == [NO_CODE]


@pytest.mark.parametrize(
    "condition",
    [
        "x > A.x",
        "x - A.x > 2",
        "B.d / A.d > 1.5D",
        "B.s > A.s AND B.s <> 'b'",
        "sum(B.x) < 10 AND avg(A.d) > 1",
        "B.x IN (A.x, A.x + 1, 3)",
        "coalesce(A.x, B.x, 0) BETWEEN 1 AND FIRST(x)",
        "CASE WHEN A.x > 1 THEN B.x ELSE -A.x END = abs(B.x - A.x)",
        "CAST(B.x AS BIGINT) * A.x <=> count(*)",
        "NOT (B.x = LAST(A.x, 1)) OR max(B.s) IS NULL AND min(x) < 2",
        "CAST(B.x AS DECIMAL(10, 2)) + CAST(A.x AS DECIMAL(8, 1)) > 1.5",
    ],
)
def test_what_depends_on_the_way_is_code(condition: str) -> None:
    expected = PYTHON if "max(B.s)" in condition else None
    span = spans(f"PATTERN (A B+) DEFINE B AS {condition}")[1]
    assert (span == PYTHON) if expected else span[0] >= 0


@pytest.mark.parametrize("condition", ["LAST(CLASSIFIER(), 1) = 'A'", "B.s LIKE concat(A.s, '%') OR A.x % B.x = 1"])
def test_what_has_no_code_is_pythons(condition: str) -> None:
    if "LIKE" in condition:
        condition = condition.partition(" OR ")[2]
    assert spans(f"PATTERN (A B+) DEFINE B AS {condition}")[1] == PYTHON


@pytest.mark.parametrize("seed", range(40))
def test_python_computes_what_code_computes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    drawn, given = case(dice), rows(dice, 4, 7)

    def answer() -> Any:
        matcher = matcher_of(drawn.sql)
        try:
            return matcher.run(table_for(matcher, given)).to_pylist()
        except ExpressionError as error:
            return error.code

    by_code = answer()

    def refuse(*_: Any) -> Any:
        raise code.NotCoded

    monkeypatch.setattr(code.Coder, "write", refuse)
    assert repr(answer()) == repr(by_code)


def test_an_error_is_one_only_where_the_search_comes() -> None:
    pattern = "MEASURES A.id AS a, B.id AS b PATTERN (A B) DEFINE A AS x > 0, B AS 10 / (x - 3) > 0"
    assert found(pattern, in_a_row(0, 3, 0, 1, 4)) == [{"a": 3, "b": 4}]
    with pytest.raises(ExpressionError, match="division by zero"):
        found(pattern, in_a_row(0, 1, 3, 4))
    # A guard before it in the same condition counts.
    guarded = pattern.replace("B AS 10", "B AS x <> 3 AND 10")
    assert found(guarded, in_a_row(0, 1, 3, 4)) == [{"a": 2, "b": 3}]


def test_sums_that_are_too_large_are_errors() -> None:
    most = (1 << 63) - 1
    given = [one(ts=at, id=value) for at, value in enumerate([most - 1, 1, 1])]
    sql = "MEASURES count(*) AS n PATTERN (A B+) DEFINE B AS sum(id) > 0"
    assert found(sql, given[:2]) == [{"n": 2}]
    with pytest.raises(ExpressionError, match=r"overflow|too large|out of range"):
        found(sql, given)


def test_matches_longer_than_any_buffer() -> None:
    count = 30_000
    given = [one(ts=at, id=at, x=1) for at in range(count)]
    sql = "MEASURES count(*) AS n, sum(x) AS s, FIRST(id, 5) AS f PATTERN (A+ B) DEFINE A AS sum(A.x) < 29999 AND x > FIRST(A.x) - 1"
    assert found(sql, given) == [{"n": count - 1, "s": count - 1, "f": 5}]


def test_nested_loops_are_linear_where_conditions_are_independent() -> None:
    given = in_a_row(*[1] * 3_000)
    assert found("MEASURES A.id AS id PATTERN ((A+)+ (A*)* B) DEFINE A AS x = 1, B AS x = 2", given) == []


def test_nested_loops_that_explode_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_STEPS", 1_000_000)
    monkeypatch.setattr(machine, "_AT_ONCE", 500_000)
    given = in_a_row(*[1] * 60)
    with pytest.raises(ExpressionError, match=r"E1314.*too many ways"):
        found("MEASURES A.id AS id PATTERN ((A+)+ B) DEFINE A AS count(*) > 0, B AS x = 2", given)


def test_partitions_come_in_chunks() -> None:
    dice = random.Random(3)
    given = rows(dice, 30, 20)
    matcher = matcher_of(
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY g ORDER BY ts MEASURES MATCH_NUMBER() AS n, A.id AS id, count(*) AS c "
        "PATTERN (A B+) DEFINE B AS x >= A.x)"
    )
    table = table_for(matcher, given)
    whole = matcher.run(table)
    for size in (1, 7, 50):
        batches = table.to_batches(max_chunksize=size)
        pieces = list(matcher.batches(batches, chunk_rows=30))
        assert pa.Table.from_batches(pieces).equals(whole)
    assert list(matcher.batches([])) == []


def test_ties_are_put_in_order_whoever_sorted() -> None:
    dice = random.Random(5)
    matcher = matcher_of(
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY g ORDER BY ts MEASURES CLASSIFIER() AS c, LAST(A.d) AS d "
        "ALL ROWS PER MATCH PATTERN (A B*) DEFINE B AS x >= A.x OR s > A.s)"
    )
    given = [row | {"ts": row["ts"] and row["ts"] // 3} for row in rows(dice, 12, 12)]
    wanted = matcher.run(table_for(matcher, given))  # which has them by their ids, the first of the other columns
    for _ in range(5):
        dice.shuffle(given)
        table = table_for(matcher, given, tied=True)
        found = pa.Table.from_batches(list(matcher.batches(table.to_batches(max_chunksize=9), chunk_rows=20)))
        assert repr(found.to_pylist()) == repr(wanted.to_pylist())
