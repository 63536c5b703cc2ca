"""Views that cannot be defined, refreshed or changed as asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.keys import row_keys
from headwater.incremental.zset import ZSet
from headwater.lakehouse import Lake, connect

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10, "name": "a"}, {"id": 2, "amount": 0, "name": "b"}]
SPEND = "SELECT name, sum(amount) AS total FROM orders GROUP BY name"


def spend(lake: Lake, **options: Any) -> Any:
    lake.write("orders", ROWS)
    view = lake.view("spend", SPEND, **options)
    view.refresh()
    return view


def case_view_that_is_not_there(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.view("spent")


def case_view_of_the_name_of_a_table(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("orders", "SELECT 1 AS one")


def case_view_that_is_there_already(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.sql(f"CREATE MATERIALIZED VIEW spend AS {SPEND}")


def case_view_that_is_changed_like_a_table(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.sql("UPDATE spend SET total = 0")


def case_view_that_is_dropped_like_a_table(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.sql("DROP TABLE spend")


def case_view_with_a_parameter(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    text = "CREATE MATERIALIZED VIEW v AS SELECT * FROM orders WHERE id = :id"
    return lambda: lake.sql(text, parameters={"id": 1})


def case_view_with_a_column_twice(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT id, name AS ID FROM orders")


def case_view_of_an_old_version(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT * FROM orders VERSION AS OF 0")


def case_view_that_is_partitioned(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("CREATE MATERIALIZED VIEW v PARTITIONED BY (name) AS SELECT * FROM orders")


def case_view_whose_table_was_changed_by_others(lake: Lake) -> Attempt:
    view = spend(lake)
    view.table.delete("total = 0")
    refresh: Attempt = view.refresh
    return refresh


def case_strict_view_whose_changes_are_gone(lake: Lake) -> Attempt:
    view = spend(lake, policy="strict")
    lake.drop("orders")
    lake.write("orders", ROWS[:1])
    refresh: Attempt = view.refresh
    return refresh


def case_view_whose_source_has_lost_a_column(lake: Lake) -> Attempt:
    view = spend(lake)
    lake.table("orders").create(pa.schema([("id", pa.int64()), ("amount", pa.int64())]), mode="replace")
    refresh: Attempt = view.refresh
    return refresh


def case_view_whose_state_does_not_know_a_row(lake: Lake) -> Attempt:
    keys = row_keys(ZSet.from_arrow(pa.table({"id": [1]})))
    return lambda: Addresses().leaving(keys, np.array([1]), f"{lake.location}/spend")


def shout(text: str) -> str:
    return text.upper()


def shouting(lake: Lake, mark: str) -> None:
    lake.function("shout", shout, arguments=["string"], returns="string", version=mark)


def case_view_whose_function_is_not_registered(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    shouting(lake, "1")
    lake.view("loud", "SELECT shout(name) AS name FROM orders").refresh()
    other = connect(lake.location)
    return lambda: other.view("loud")


def case_view_whose_function_is_another_one(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    shouting(lake, "1")
    view = lake.view("loud", "SELECT shout(name) AS name FROM orders")
    view.refresh()
    shouting(lake, "2")
    refresh: Attempt = view.refresh
    return refresh


CASES = [value for name, value in sorted(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_bad_input(case: Callable[[Lake], Attempt], catalogue: Any) -> None:
    catalogue.check(case)
