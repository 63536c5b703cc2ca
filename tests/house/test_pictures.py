"""The pictures of the guides are drawn by the product; ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/house`` draws them anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.planning import build
from headwater.sql.query import parse_query

IMAGES = Path(__file__).parents[2] / "docs" / "images"
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"


def spend() -> hw.Circuit:
    c = hw.Circuit("spend")
    orders = c.input("orders", pa.schema([("customer", pa.int64()), ("amount", pa.int64()), ("day", pa.int64())]))
    customers = c.input("customers", pa.schema([("id", pa.int64()), ("city", pa.string())]), key="id")
    paid = orders.filter("amount > 0").join(customers, [("customer", "id")])
    paid.group_by("city").agg(orders="count(*)", total="sum(amount)", largest="max(amount)").output("by_city")
    return c


def left_join() -> hw.Circuit:
    c = hw.Circuit("left join")
    orders = c.input("orders", pa.schema([("customer", pa.int64()), ("amount", pa.int64())]))
    names = c.input("customers", pa.schema([("customer", pa.int64()), ("name", pa.string())]))
    orders.join(names, "customer", how="left").output("named")
    return c


def reachable() -> hw.Circuit:
    c = hw.Circuit("reachable")
    edge = pa.schema([("a", pa.int64()), ("b", pa.int64())])

    def longer(path: Any, edges: Any) -> Any:
        return edges.plus(path.join(edges, [("b", "a")], suffix="2").select("a", b="b2"))

    c.recursive({"path": edge}, longer, edges=c.input("edges", edge))["path"].output("path")
    return c


_LATE = """
SELECT c.city, count(*) AS late, max(o.amount) AS largest
FROM orders o JOIN customers c ON o.customer = c.id
WHERE o.amount > 100 AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.id = o.id)
GROUP BY c.city
"""


def view_of_late_orders() -> hw.Circuit:
    c = hw.Circuit("late")
    orders = c.input("orders", pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("amount", pa.int64())]))
    customers = c.input("customers", pa.schema([("id", pa.int64()), ("city", pa.string())]))
    payments = c.input("payments", pa.schema([("id", pa.int64())]))
    inputs = {"orders": orders, "customers": customers, "payments": payments}
    build(c, parse_query(_LATE, lambda name, *_: inputs[name].schema), inputs).output("late")
    return c


@pytest.mark.parametrize("drawing", [spend, left_join, reachable, view_of_late_orders], ids=lambda f: f.__name__)
def test_the_picture_is_that_of_the_circuit(drawing: Callable[[], hw.Circuit]) -> None:
    drawn = drawing().graph().svg()
    file = IMAGES / f"{drawing.__name__}.svg"
    if UPDATE:
        file.write_text(drawn)
    assert file.read_text() == drawn
