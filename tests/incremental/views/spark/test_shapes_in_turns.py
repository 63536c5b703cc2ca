"""One view for each shape of query, also those that random queries never have, by tasks and by this process in turns.

Recursions, sessions, joins without keys and by ranges, the cube, each kind of window: the rows are the query's, and the state is that of a twin
that never left the process, however many shards there are. Each shape is there for an operator of its circuit.
HEADWATER_TEST_SEEDS makes the histories longer.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.incremental.planning.views import circuit_of
from tests.incremental.views.spark.conftest import on, state_of
from tests.incremental.views.test_random_views import orders, rows_of

import headwater as hw
from headwater.derived import upkeep
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.views.spark import running
from headwater.incremental.views.spark.places import here
from headwater.testing.views import SCHEMAS

STEPS = 4 * int(os.environ.get("HEADWATER_TEST_SEEDS", "1"))

_PATHS = (
    "WITH RECURSIVE p(a, b, n) AS (SELECT k, cast(n AS int), 1 FROM u WHERE n BETWEEN 0 AND 5 {word} "
    "SELECT p.a, cast(u.n AS int), p.n + 1 FROM p JOIN u ON p.b = u.k WHERE p.n < 4 AND u.n BETWEEN 0 AND 5) SELECT "
)
SHAPES = {
    "all paths": ("Nest", _PATHS.format(word="UNION ALL") + "a, b, n FROM p"),
    "what is reached": (
        "Nest",
        (
            "WITH RECURSIVE r(a, b) AS (SELECT k, n FROM w WHERE n IS NOT NULL UNION SELECT r.a, w.n FROM r JOIN w ON r.b = w.k) "
            "SELECT a, b FROM r"
        ),
    ),
    "groups of a recursion": (
        "Nest",
        _PATHS.format(word="UNION") + "a, count(*) AS n, max(b) AS far FROM p GROUP BY a",
    ),
    "a recursion from one row": (
        "Nest",
        (
            "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT cast(w.n AS int) FROM r JOIN w ON w.k = r.x WHERE w.n > 0) "
            "SELECT x FROM r"
        ),
    ),
    "two recursions": (
        "Nest",
        (
            "WITH RECURSIVE a(x) AS (SELECT 1 UNION SELECT cast(w.n AS int) FROM a JOIN w ON w.k = a.x WHERE w.n > 0), "
            "b(x, y) AS (SELECT k, n FROM u WHERE n IS NOT NULL UNION SELECT b.x, u.n FROM b JOIN u ON b.y = u.k) "
            "SELECT b.x, b.y FROM a JOIN b ON a.x = b.x"
        ),
    ),
    "cross join": ("Join", "SELECT t.k AS a, u.n AS b FROM t CROSS JOIN u"),
    "join by a comparison": ("Join", "SELECT t.s, u.n FROM t JOIN u ON t.k < u.k"),
    "left join by a comparison": ("Join", "SELECT t.s, u.n FROM t LEFT JOIN u ON t.k < u.n AND u.g"),
    "join by a range": (
        "IntervalJoin",
        "SELECT t.s, w.k, w.n FROM t JOIN w ON w.e BETWEEN t.e AND t.e + INTERVAL 2 DAYS",
    ),
    "left join by a range and a key": (
        "IntervalJoin",
        "SELECT t.k, t.s, w.n FROM t LEFT JOIN w ON t.k = w.k AND w.e BETWEEN t.e - INTERVAL 1 DAY AND t.e",
    ),
    "full join by a range": (
        "IntervalJoin",
        "SELECT t.s, w.n FROM t FULL JOIN w ON w.k BETWEEN t.k AND t.k + 1",
    ),
    "star": (
        "Join",
        "SELECT t.s, u.n, w.v, x.g FROM t JOIN u ON t.k = u.k JOIN w ON t.e = w.e LEFT JOIN u AS x ON t.s = x.s",
    ),
    "the last one before": (
        "TopK",
        (
            "SELECT t.s, t.e, w.n FROM t JOIN w ON t.k = w.k AND w.e <= t.e "
            "QUALIFY row_number() OVER (PARTITION BY t.s, t.e ORDER BY w.e DESC, w.n) = 1"
        ),
    ),
    "cube": (
        "Aggregate",
        "SELECT k, s, g, grouping_id() AS i, count(*) AS n, sum(d) AS total FROM u GROUP BY CUBE (k, s, g)",
    ),
    "rollup of extremes": ("Aggregate", "SELECT k, s, min(v) AS low, max(e) AS last FROM t GROUP BY ROLLUP (k, s)"),
    "one group": ("Aggregate", "SELECT count(*) AS n, sum(d) AS total, max(s) AS most FROM t"),
    "distinct arguments": (
        "Aggregate",
        "SELECT k, count(DISTINCT s) AS a, sum(DISTINCT n) AS b, count(*) FILTER (WHERE g) AS c FROM u GROUP BY k",
    ),
    "not in": ("Join", "SELECT k, s FROM t WHERE k NOT IN (SELECT n FROM u WHERE n > 0)"),
    "not in with nulls": ("Join", "SELECT k, s FROM t WHERE k NOT IN (SELECT k FROM u WHERE g)"),
    "not exists": ("Join", "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.d > t.d)"),
    "one value of a subquery": ("Aggregate", "SELECT k, (SELECT max(n) FROM u) AS most FROM t"),
    "a subquery of one row": ("Single", "SELECT k, (SELECT DISTINCT g FROM u WHERE g) AS g FROM t"),
    "first rows": ("TopK", "SELECT k, s, v FROM t ORDER BY v DESC, s LIMIT 5 OFFSET 1"),
    "first rows of each": (
        "TopK",
        "SELECT k, s, d FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY d DESC, s, v, e) <= 2",
    ),
    "ranks": (
        "Ranks",
        "SELECT k, s, rank() OVER (PARTITION BY k ORDER BY d) AS a, percent_rank() OVER (ORDER BY e) AS b FROM t",
    ),
    "lag": ("Lag", "SELECT k, lag(n, 2) OVER (PARTITION BY s ORDER BY n) AS a, lead(d) OVER (ORDER BY d) AS b FROM u"),
    "frames": (
        "Frames",
        (
            "SELECT k, sum(n) OVER (PARTITION BY k ORDER BY e ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a, "
            "max(n) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS b FROM w"
        ),
    ),
    "tumbling windows": (
        "Aggregate",
        (
            "SELECT window(m, '10 seconds').start AS a, k, count(*) AS n, sum(n) AS total FROM w "
            "GROUP BY window(m, '10 seconds'), k"
        ),
    ),
    "hopping windows": (
        "Explode",
        (
            "SELECT window(m, '30 seconds', '10 seconds').end AS a, count(*) AS n, max(v) AS most FROM w "
            "GROUP BY window(m, '30 seconds', '10 seconds')"
        ),
    ),
    "sessions": (
        "Sessions",
        (
            "SELECT k, session_window(m, '15 seconds').start AS a, count(*) AS n, sum(n) AS total FROM w "
            "GROUP BY k, session_window(m, '15 seconds')"
        ),
    ),
    "sessions of everybody": (
        "Sessions",
        "SELECT session_window(m, '29 seconds').end AS a, count(*) AS n FROM w GROUP BY session_window(m, '29 seconds')",
    ),
    "elements": ("Explode", "SELECT k, i, x FROM w LATERAL VIEW OUTER posexplode(xs) AS i, x"),
    "set operations": (
        "Distinct",
        "SELECT k FROM t UNION SELECT k FROM u EXCEPT SELECT k FROM w WHERE n > 1",
    ),
    "bags": ("Except", "SELECT k, s FROM t EXCEPT ALL (SELECT k, s FROM u INTERSECT ALL SELECT k, s FROM t)"),
    "a row pattern": (
        "Matches",
        (
            "SELECT * FROM w MATCH_RECOGNIZE (PARTITION BY k ORDER BY m, n MEASURES count(*) AS c, LAST(B.n) AS last "
            "PATTERN (A B*) DEFINE B AS n > A.n)"
        ),
    ),
    "rows of the text": (
        "Constant",
        "SELECT x, count(u.n) AS n FROM VALUES (1), (2), (NULL) AS v(x) LEFT JOIN u ON x = k GROUP BY x",
    ),
}


def _operators(circuit: Circuit) -> set[str]:
    return {type(vertex.node).__name__ for vertex in circuit.vertices}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_its_operator(name: str) -> None:
    operator, sql = SHAPES[name]
    assert operator in _operators(circuit_of(sql))


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_take_turns(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_MOST_ALIKE", 1)  # runs are put together at every other refresh
    rng = random.Random(name)
    lake, order = hw.connect(tmp_path), orders(rng)
    for table in SCHEMAS:
        lake.write(table, rows_of(rng, table, 12, order))
    sql = SHAPES[name][1]
    view, twin = lake.view("v", sql), lake.view("twin", sql)
    by_tasks = 0
    for step in range(STEPS):
        engine = "spark" if step < 2 else rng.choice(["spark", "local"])
        with here(), on(engine, rng.randint(2, 6)):
            done = view.refresh()
        by_tasks += "on Spark" in done.reason
        with on("local"):
            twin.refresh()
        assert view.verify().equal, f"step {step}, {engine}: {view.verify()}"
        assert upkeep.wait(60)
        assert state_of(view) == state_of(twin), f"step {step}, {engine}"
        for table in SCHEMAS:
            lake.table(table).append(rows_of(rng, table, 4, order))
            if rng.random() < 0.5:
                lake.table(table).delete(f"k = {rng.randint(0, 4)}")
    assert by_tasks > 1
