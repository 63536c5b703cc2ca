"""A search that has too many ways ends with an error, wherever its steps go, and can be stopped before that."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql.matching.test_conditions import found, in_a_row, one
from tests.sql.matching.test_plain_matcher import matcher_of, table_for

from headwater.base.errors import ExpressionError
from headwater.sql.matching import machine

NESTED = "MEASURES A.id AS id PATTERN ((A+)+ B) DEFINE A AS max(A.s) IS NULL, B AS x = 2"
"""Two to the power of the rows, and Python computes the condition of each."""

CUBIC = "MEASURES A.id AS id PATTERN (A+ B+ C) DEFINE A AS count(*) > 0, C AS x = 2"
"""The square of the rows from each start, and the cube of them from all."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are reached at once."""
    monkeypatch.setattr(machine, "MOST_STEPS", 20_000)
    monkeypatch.setattr(machine, "ASK_STEPS", 200)
    monkeypatch.setattr(machine, "STEPS_PER_ROW", 100)


@pytest.mark.usefixtures("small")
def test_conditions_that_python_computes_count() -> None:
    assert found(NESTED, in_a_row(1, 1, 1, 1)) == []
    with pytest.raises(ExpressionError, match=r"E1314.*steps from one row found no end"):
        found(NESTED, in_a_row(*[1] * 16))


@pytest.mark.usefixtures("small")
def test_starts_of_a_partition_count_together() -> None:
    assert found(CUBIC, in_a_row(*[1] * 30)) == []
    with pytest.raises(ExpressionError, match=r"E1314.*steps in one partition found no end"):
        found(CUBIC, in_a_row(*[1] * 80))


@pytest.mark.usefixtures("small")
def test_partitions_count_together() -> None:
    def answer(partitions: int) -> Any:
        matcher = matcher_of(f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY g ORDER BY ts {CUBIC})")
        given = [one(g=f"{p:04}", ts=at, id=at, x=1) for p in range(partitions) for at in range(25)]
        return matcher.run(table_for(matcher, given)).num_rows

    assert answer(2) == 0
    with pytest.raises(ExpressionError, match=r"E1314.*steps in \d+ partitions found no end"):
        answer(200)


def test_linear_searches_of_any_length_stay_below_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_STEPS", 1_000)
    monkeypatch.setattr(machine, "ASK_STEPS", 10_000)
    coded = "MEASURES count(*) AS n PATTERN (A B+) DEFINE B AS x > A.x - 1 AND sum(B.x) < 50"
    assert len(found(coded, in_a_row(*[1] * 50_000))) == 1_000
    asked = "MEASURES count(*) AS n PATTERN (A B+) DEFINE B AS LAST(CLASSIFIER(), 1) = 'A'"
    assert len(found(asked, in_a_row(*[1] * 400))) == 200
    long = "MEASURES count(*) AS n PATTERN (A+) DEFINE A AS LAST(CLASSIFIER(), 1) = 'A' OR count(*) = 1"
    assert found(long, in_a_row(*[1] * 400)) == [{"n": 400}]


@pytest.mark.parametrize("sql", [NESTED, CUBIC])
def test_a_search_can_be_stopped(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_STEPS", 1 << 60)
    monkeypatch.setattr(machine, "_AT_ONCE", 10_000)
    matcher = matcher_of(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts {sql})")
    asked = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) == 20

    matcher.stopped = stopped
    # Three more rows would make the one search eight times as long, and the other one is one of hours.
    with pytest.raises(machine.SearchStopped):
        matcher.run(table_for(matcher, in_a_row(*[1] * (14 if sql == NESTED else 8_000))))
    assert len(asked) == 20


def test_an_error_of_one_thread_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_STEPS", 1 << 60)
    monkeypatch.setattr(machine, "_AT_ONCE", 100_000)
    monkeypatch.setattr(machine, "_ALONE", 100)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    matcher = matcher_of(
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY g ORDER BY ts MEASURES A.id AS id AFTER MATCH SKIP TO LAST C "
        "PATTERN (A+ B+ C | D) DEFINE A AS count(*) > 0 AND x = 1, C AS x = 2, D AS x = 3)"
    )
    given = [one(g=g, ts=at, id=at, x=x) for g, x in (("a", 1), ("b", 3)) for at in range(8_000)]
    with pytest.raises(ExpressionError, match="E1315"):
        matcher.run(table_for(matcher, given))
