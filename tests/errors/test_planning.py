"""What a user reads when a query cannot be a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.planning import build, check
from headwater.lakehouse import Lake
from headwater.sql.query import parse_query

Attempt = Callable[[], Any]
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("price", pa.float64())])


def checked(sql: str) -> Attempt:
    return lambda: check(parse_query(sql, lambda *_: SCHEMA), sql)


def built(sql: str) -> hw.Circuit:
    circuit = hw.Circuit("view")
    build(circuit, parse_query(sql, lambda *_: SCHEMA), {"orders": circuit.input("orders", SCHEMA)}).output("view")
    return circuit


def case_a_view_that_reads_the_clock(_: Lake) -> Attempt:
    return checked("SELECT id\nFROM orders\nWHERE day > current_date() - INTERVAL 7 DAYS")


def case_a_view_with_a_limit_and_no_order(_: Lake) -> Attempt:
    return checked("SELECT id, price FROM orders LIMIT 10")


def case_a_view_of_a_table_as_it_was(_: Lake) -> Attempt:
    return checked("SELECT id FROM orders VERSION AS OF 3")


def case_a_view_with_a_name_twice(_: Lake) -> Attempt:
    return lambda: built("SELECT id, price AS ID FROM orders")


def case_a_view_with_a_frame_of_months(_: Lake) -> Attempt:
    frame = "RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW"
    return checked(f"SELECT id, sum(price) OVER (ORDER BY day {frame}) AS month FROM orders")


def case_a_view_that_collects_over_a_frame(_: Lake) -> Attempt:
    return checked("SELECT id, collect_list(price) OVER (ORDER BY day) AS prices FROM orders")


def case_a_view_whose_recursion_reads_itself_twice(_: Lake) -> Attempt:
    step = "SELECT a.n + 1 FROM r AS a JOIN r AS b ON a.n = b.n WHERE a.n < 9"
    return checked(f"WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION {step}) SELECT n FROM r")


def case_a_view_whose_subquery_gives_two_rows(_: Lake) -> Attempt:
    circuit = built("SELECT id, (SELECT price FROM orders) AS price FROM orders")
    rows = pa.table({"id": [1, 2], "day": [None, None], "price": [1.0, 2.0]}, schema=SCHEMA)
    return lambda: circuit.step(orders=rows)


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__.removeprefix("case_"))
def test_planning(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
