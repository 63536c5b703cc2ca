"""The pictures of the guides are drawn by the product; ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/house`` draws them anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw

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


@pytest.mark.parametrize("build", [spend, left_join, reachable], ids=lambda f: f.__name__)
def test_the_picture_is_that_of_the_circuit(build: Callable[[], hw.Circuit]) -> None:
    drawn = build().graph().svg()
    file = IMAGES / f"{build.__name__}.svg"
    if UPDATE:
        file.write_text(drawn)
    assert file.read_text() == drawn
