"""session_window() in groups is one operator with one arrangement, where it can be, and right in every case."""

from __future__ import annotations

import pytest

from headwater.testing.views import SCHEMAS

from .views import circuit_of, holds, labels

_VIEWS = {
    "by a key": "SELECT k, session_window(m, '15 seconds').start AS a, count(*) AS n, sum(n) AS s FROM w "
    "GROUP BY k, session_window(m, '15 seconds')",
    "with its end": "SELECT k, session_window(m, '1 second') AS w, min(v) AS v FROM w GROUP BY k, session_window(m, '1 second')",
    "alone": "SELECT session_window(m, '29 seconds').end AS e, count(*) AS n FROM w GROUP BY session_window(m, '29 seconds')",
    "by floats": "SELECT v, count(*) AS n FROM w GROUP BY v, session_window(m, '30 seconds')",
    "by an expression": "SELECT k % 2 AS b, count(*) AS n FROM w GROUP BY k % 2, session_window(m, '30 seconds')",
}
_LEFT_ALONE = {
    "a lag that somebody reads": "SELECT k, b, max(c) OVER (PARTITION BY k ORDER BY m) AS s FROM (SELECT k, m, b, "
    "CASE WHEN b IS NULL OR m > b THEN m END AS c FROM (SELECT k, m, "
    "lag(m + INTERVAL 5 SECOND) OVER (PARTITION BY k ORDER BY m) AS b FROM w WHERE m IS NOT NULL))",
    "a time that may be null": "SELECT k, max(c) OVER (PARTITION BY k ORDER BY m) AS s FROM (SELECT k, m, "
    "CASE WHEN b IS NULL OR m > b THEN m END AS c FROM (SELECT k, m, "
    "lag(e) OVER (PARTITION BY k ORDER BY m) AS b FROM (SELECT k, m, m + INTERVAL 5 SECOND AS e FROM w)))",
}


@pytest.mark.parametrize("name", _VIEWS)
def test_sessions_are_one_arrangement(name: str) -> None:
    found = labels(circuit_of(_VIEWS[name], SCHEMAS))
    assert found.count("sessions") == found.count("arrange") == 1


@pytest.mark.long
@pytest.mark.parametrize("name", _VIEWS)
def test_sessions_equal_a_recomputation(name: str) -> None:
    holds(_VIEWS[name], steps=15)


@pytest.mark.parametrize("name", _LEFT_ALONE)
def test_what_only_looks_like_sessions_is_left_alone(name: str) -> None:
    assert "sessions" not in labels(circuit_of(_LEFT_ALONE[name], SCHEMAS))
    holds(_LEFT_ALONE[name], steps=8)
