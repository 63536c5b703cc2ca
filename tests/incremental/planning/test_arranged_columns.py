"""Columns that nobody reads are kept nowhere: no arrangement of a view's circuit has one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.sql.analyzed.spoken import queries, stored
from tests.sql.oracle import plan_of, sections
from tests.sql.tpch import tables

from headwater.base.errors import ExpressionError, UnsupportedError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build
from headwater.sql.analyzed import plan_of as analyzed_plan
from headwater.testing import nexmark
from headwater.testing.views import SCHEMAS, random_view

from .reading import Columns, recorded, unread
from .views import circuit_of

_TPCH = sections("tpch.sql")
_NEXMARK = [n for n in queries() if n.startswith("nexmark")]
_VISITS = pa.schema(
    [
        ("id", pa.int64()),
        ("user", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("amount", pa.int64()),
        ("page", pa.string()),
        ("agent", pa.string()),
        ("x", pa.float64()),
    ]
)
_USERS = pa.schema([("user", pa.string()), ("name", pa.string()), ("born", pa.date32()), ("x", pa.float64())])
_VIEWS = {
    "sessions": "SELECT user, session_window(ts, '1 hour').start AS s, sum(amount) AS n FROM v "
    "GROUP BY user, session_window(ts, '1 hour')",
    "lag": "SELECT id, lag(amount) OVER (PARTITION BY user ORDER BY ts) AS b FROM v",
    "lag of an expression": "SELECT id, lag(upper(page), 1, agent) OVER (PARTITION BY lower(user) ORDER BY ts) AS b FROM v",
    "numbers": "SELECT user, row_number() OVER (PARTITION BY page ORDER BY ts) AS n FROM v",
    "only numbers": "SELECT row_number() OVER (PARTITION BY page ORDER BY ts) AS n FROM v",
    "ranks": "SELECT id, rank() OVER (ORDER BY amount + 1) AS n, ntile(4) OVER (ORDER BY ts) AS q FROM v",
    "frames": "SELECT id, sum(amount) OVER (PARTITION BY user ORDER BY ts ROWS 3 PRECEDING) AS s, "
    "max(length(page)) OVER (PARTITION BY user ORDER BY ts) AS m FROM v",
    "whole partitions": "SELECT id, count(agent) OVER (PARTITION BY user) AS n, lag(id) OVER (ORDER BY ts) AS b FROM v",
    "first rows": "SELECT id FROM v QUALIFY row_number() OVER (PARTITION BY user ORDER BY ts DESC) <= 2",
    "the first": "SELECT id FROM v ORDER BY upper(page) LIMIT 3",
    "how many are the first": "SELECT count(*) AS n FROM (SELECT * FROM v ORDER BY ts LIMIT 3)",
    "a join by expressions": "SELECT v.id, u.born FROM v JOIN u ON upper(v.user) = upper(u.user) AND v.page > u.name",
    "a left join": "SELECT v.id, u.born FROM v LEFT JOIN u ON v.user = u.user",
    "a left join by floats": "SELECT v.id, u.born FROM v LEFT JOIN u ON v.x = u.x",
    "a full join": "SELECT v.id, u.born FROM v FULL JOIN u ON v.user = u.user AND length(v.page) < length(u.name)",
    "semi": "SELECT id FROM v WHERE user IN (SELECT user FROM u WHERE name > 'a')",
    "anti": "SELECT id FROM v WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.user = v.user AND u.name > v.page)",
    "between": "SELECT a.id, b.id AS other FROM v a JOIN v b ON a.user = b.user "
    "AND a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 HOUR",
    "extremes": "SELECT user, max_by(page, ts) AS p, min(agent) AS a FROM v GROUP BY user",
    "a subquery with an order": "SELECT name FROM u WHERE user IN (SELECT user FROM v ORDER BY ts LIMIT 3)",
    "recursion": "WITH RECURSIVE r AS (SELECT id, amount FROM v UNION SELECT v.id, v.amount FROM r JOIN v "
    "ON r.amount = v.id) SELECT id FROM r",
    "read twice": "WITH q AS (SELECT user, count(*) AS n, max(page) AS p FROM v GROUP BY user) "
    "SELECT a.n, b.p FROM q a JOIN q b ON a.user = b.p",
}


def _spare(text: str) -> dict[str, Columns]:
    with recorded():
        return unread(circuit_of(text, {"v": _VISITS, "u": _USERS}))


@pytest.mark.parametrize("name", _VIEWS)
def test_an_arrangement_has_no_column_that_nobody_reads(name: str) -> None:
    assert not _spare(_VIEWS[name])


@pytest.mark.parametrize("name", _TPCH)
def test_queries_of_tpch(name: str) -> None:
    circuit = Circuit(name)
    with recorded():
        inputs = {n: circuit.input(n, t.schema) for n, t in tables().items()}
        build(circuit, plan_of(_TPCH[name], tables()), inputs).output("view")
    assert not unread(circuit)


@pytest.mark.parametrize("name", _NEXMARK)
def test_queries_of_nexmark(name: str) -> None:
    circuit = Circuit(name)
    with recorded():
        inputs = {n: circuit.input(n, schema) for n, schema in nexmark.SCHEMAS.items()}
        build(circuit, analyzed_plan(stored(name)), inputs).output("view")
    assert not unread(circuit)


@pytest.mark.long
def test_random_views() -> None:
    seen = 0
    for seed in range(150):
        try:
            with recorded():
                circuit = circuit_of(random_view(seed), SCHEMAS)
        except (UnsupportedError, ExpressionError):
            continue
        assert not unread(circuit), random_view(seed)
        seen += 1
    assert seen > 100


def test_a_column_that_nobody_reads_is_found() -> None:
    with recorded():
        circuit = Circuit("c")
        v, u = circuit.input("v", _VISITS), circuit.input("u", _USERS)
        v.join(u, "user").select("id", "born").output("view")
    assert set.union(*unread(circuit).values()) == {"ts", "amount", "page", "agent", "x", "name"}
