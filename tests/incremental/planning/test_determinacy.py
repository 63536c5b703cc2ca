"""Ties are broken by columns that are read, and by no others: those that nobody reads are read from no table, either."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.incremental.planning import determined
from headwater.sql.demands import demands
from headwater.sql.query import parse_query

_SCHEMA = pa.schema([(c, pa.int64()) for c in "abcde"])


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT a, lag(a) OVER (PARTITION BY b ORDER BY c) AS x FROM t", "abc"),
        ("SELECT a FROM t ORDER BY b LIMIT 3", "ab"),
        ("SELECT count(*) AS n FROM (SELECT * FROM t ORDER BY b LIMIT 3)", "b"),
        ("SELECT a FROM t WHERE b IN (SELECT c FROM t ORDER BY d LIMIT 2)", "abcd"),
        ("SELECT a, (SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY c) AS n FROM t)) AS m FROM t", "ac"),
        (("WITH q AS (SELECT *, row_number() OVER (ORDER BY a) AS n FROM t) SELECT b FROM q WHERE EXISTS "
         "(SELECT 1 FROM q AS r WHERE r.n = 2 AND r.c = q.c)"), "abc"),
        ("SELECT DISTINCT a, b, sum(c) OVER (ORDER BY d ROWS 1 PRECEDING) AS s FROM t", "abcd"),
    ],
)  # fmt: skip
def test_only_what_is_read_breaks_ties(sql: str, read: str) -> None:
    plan = determined(parse_query(sql, lambda *_: _SCHEMA))
    assert {c for demand in demands(plan) for c in demand.columns} == set(read)
    assert determined(plan) == plan, "once is as good as twice"


def test_a_plan_with_one_answer_stays_as_it_is() -> None:
    plan = parse_query("SELECT a, rank() OVER (ORDER BY b) AS r FROM t WHERE c > 1", lambda *_: _SCHEMA)
    assert determined(plan) is plan
