"""Which stored columns a query's columns are made of."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.sql.lineage import lineage
from headwater.sql.query import parse_query

SCHEMAS = {
    "orders": pa.schema(
        [("id", pa.int64()), ("customer", pa.int64()), ("amount", pa.float64()), ("tags", pa.list_(pa.string()))]
    ),
    "customers": pa.schema([("id", pa.int64()), ("name", pa.string()), ("country", pa.string())]),
}


def traced(text: str) -> tuple[dict[str, str], str]:
    plan = parse_query(text, lambda name, version, timestamp: SCHEMAS[name])
    found = lineage(plan)
    shown = {c.name: " ".join(map(str, sorted(c.sources))) for c in found.columns}
    return shown, " ".join(map(str, sorted(found.conditions)))


@pytest.mark.parametrize(
    ("text", "columns", "conditions"),
    [
        ("SELECT amount * 2 AS a, 1 AS one FROM orders", {"a": "orders.amount", "one": ""}, ""),
        (
            "SELECT name, sum(amount) AS s FROM orders o JOIN customers c ON o.customer = c.id WHERE country = 'DE' GROUP BY name",
            {"name": "customers.name", "s": "orders.amount"},
            "customers.country customers.id customers.name orders.customer",
        ),
        (
            "WITH x AS (SELECT id, amount + 1 AS a FROM orders) SELECT a + b.amount AS s FROM x JOIN orders VERSION AS OF 3 b USING (id)",
            {"s": "orders.amount orders@3.amount"},
            "orders.id orders@3.id",
        ),
        ("SELECT id FROM orders UNION ALL SELECT id FROM customers", {"id": "customers.id orders.id"}, ""),
        ("SELECT id FROM orders EXCEPT SELECT id FROM customers", {"id": "orders.id"}, ""),
        ("SELECT t FROM orders LATERAL VIEW explode(tags) e AS t", {"t": "orders.tags"}, ""),
        (
            "SELECT row_number() OVER (PARTITION BY customer ORDER BY amount) AS n FROM orders",
            {"n": "orders.amount orders.customer"},
            "",
        ),
        (
            "SELECT (SELECT max(name) FROM customers) AS m FROM orders WHERE id IN (SELECT id FROM customers)",
            {"m": "customers.name"},
            "customers.id orders.id",
        ),
    ],
)
def test_lineage(text: str, columns: dict[str, str], conditions: str) -> None:
    assert traced(text) == (columns, conditions)
