"""explode and its relatives, and VALUES."""

from __future__ import annotations

import pytest

from .views import holds


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, x FROM w LATERAL VIEW explode(xs) AS x",
        "SELECT k, p, x FROM w LATERAL VIEW OUTER posexplode(xs) AS p, x",
        "SELECT k, a, b FROM w LATERAL VIEW explode(map(k, n, 7, 1L)) AS a, b WHERE k IS NOT NULL",
        "SELECT inline(array(struct(k, e), struct(k, last_day(e) AS e))) FROM w",
        "SELECT k, stack(2, k, 'a', 2, 'b') FROM w",
        "SELECT x, count(*) AS n FROM w LATERAL VIEW explode(xs) AS x GROUP BY x",
        "SELECT count(*) AS n FROM w LATERAL VIEW OUTER explode(xs) AS x",
        "SELECT p FROM w LATERAL VIEW posexplode(xs) AS p, x",
        "SELECT a FROM u LATERAL VIEW json_tuple(concat('{\"k\": ', coalesce(k, 0), '}'), 'k') AS a",
        "SELECT x.a, t.s FROM t JOIN (VALUES (1, 'x'), (NULL, 'y'), (1, 'x')) AS x(a, b) ON t.k = x.a",
        "SELECT k FROM t UNION ALL SELECT 5",
        "SELECT 1 AS one, 'a' AS two",
    ],
)
def test_made_rows_equal_a_recomputation(text: str) -> None:
    if " FROM " in text:
        holds(text)
    else:
        holds(text, steps=3)
