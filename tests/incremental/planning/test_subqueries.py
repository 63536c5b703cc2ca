"""Subqueries, LATERAL and PIVOT: plans of joins by the time they become circuits."""

from __future__ import annotations

import pytest

from .views import holds


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, (SELECT max(n) FROM u WHERE u.k = t.k) AS m FROM t",
        "SELECT k, (SELECT max(n) FROM u WHERE u.k < t.k) AS m FROM t",
        "SELECT k, (SELECT count(*) FROM u) AS n FROM t",
        "SELECT k FROM t WHERE s IN (SELECT s FROM u WHERE u.k = t.k)",
        "SELECT k FROM t WHERE s NOT IN (SELECT s FROM u WHERE u.k = t.k)",
        "SELECT k FROM t WHERE d > (SELECT avg(d) FROM u WHERE u.s = t.s)",
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k > t.k) OR s IS NULL",
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND EXISTS (SELECT 1 FROM w WHERE w.e = t.e))",
        "SELECT k FROM t WHERE (SELECT count(*) FROM u WHERE u.k = t.k) = (SELECT count(*) FROM w WHERE w.k = t.k)",
        "SELECT t.k, x.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.k = t.k) AS x",
        "SELECT t.k, x.n FROM t LEFT JOIN LATERAL (SELECT u.n FROM u WHERE u.k = t.k AND u.n > 0) AS x ON true",
        "SELECT * FROM (SELECT k, s, d FROM t) PIVOT (sum(d) FOR s IN ('a' AS a, 'B' AS b))",
    ],
)
def test_a_subquery_equals_a_recomputation(text: str) -> None:
    holds(text, steps=8)
