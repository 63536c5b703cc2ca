"""Views that cannot be defined, refreshed or changed as asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.base.errors import HeadwaterError
from headwater.incremental.views.addresses import Addresses, row_keys
from headwater.incremental.zset import ZSet
from headwater.lake import modify
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


def case_rows_that_cannot_be_erased(lake: Lake) -> Attempt:
    lake.write("orders", ROWS, properties={"delta.appendOnly": "true"})
    return lambda: lake.forget("orders", "id=1")


def case_commit_of_an_export_that_is_not_kept(lake: Lake) -> Attempt:
    table = lake.write("orders", ROWS)
    export = lake.export("out", "orders", refresh=True)
    for _ in range(11):
        table.append(ROWS)
        export.refresh()
    return lambda: lake.diff("out", 2, 12)


def case_view_that_is_there_already(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.sql(f"CREATE MATERIALIZED VIEW spend AS {SPEND}")


def case_view_that_is_changed_like_a_table(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.sql("UPDATE spend SET total = 0")


def case_view_that_is_dropped_like_a_table(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.sql("DROP TABLE spend")


def case_view_that_is_dropped_by_the_lake(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.drop("spend")


def case_view_whose_table_would_forget_its_changes(lake: Lake) -> Attempt:
    view = spend(lake)
    return lambda: view.table.set_properties({"delta.enableChangeDataFeed": "false"})


def case_view_with_a_column_of_intervals(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT id, make_dt_interval(amount) AS took FROM orders")


def case_view_with_a_parameter(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    text = "CREATE MATERIALIZED VIEW v AS SELECT * FROM orders WHERE id = :id"
    return lambda: lake.sql(text, parameters={"id": 1})


def case_view_with_a_column_twice(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT id, name AS ID FROM orders")


def case_view_with_a_column_of_the_change_feed(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT id, name AS _Change_Type FROM orders")


def case_view_with_a_column_of_no_type(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("CREATE MATERIALIZED VIEW v AS SELECT id, NULL AS x FROM orders")


def case_view_that_reads_itself(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.view("spend", "SELECT name, total FROM spend")


def case_view_that_reads_itself_through_others(lake: Lake) -> Attempt:
    spend(lake)
    lake.view("big", "SELECT name FROM spend WHERE total > 1")
    lake.view("names", "SELECT DISTINCT name FROM big")
    return lambda: lake.sql("CREATE OR REPLACE MATERIALIZED VIEW spend AS SELECT name, 1 AS total FROM names")


def case_view_of_the_name_of_a_weight(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT count(*) AS _weight FROM orders", policy="full")


def case_view_that_is_appended_to(lake: Lake) -> Attempt:
    spend(lake)
    return lambda: lake.table("spend").append([{"name": "x", "total": 1}])


def case_view_that_is_refreshed_until_a_text(lake: Lake) -> Attempt:
    view = spend(lake)
    return lambda: view.refresh(until="orders@1")


def case_view_that_is_built_without_a_column(lake: Lake) -> Attempt:
    view = spend(lake)
    lake.table("orders").create(pa.schema([("id", pa.int64()), ("amount", pa.int64())]), mode="replace")
    return lambda: view.refresh(full=True)


def case_view_with_a_property_that_is_not_known(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    text = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('headwater.polcy' = 'strict') AS SELECT id FROM orders"
    return lambda: lake.sql(text)


def case_view_that_only_grows(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    text = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('delta.appendOnly' = 'true') AS SELECT id FROM orders"
    return lambda: lake.sql(text)


def case_view_that_only_spark_could_read(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT id FROM orders TABLESAMPLE (10 PERCENT)")


def case_view_with_a_function_that_is_not_known(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT frobnicate(id) AS x FROM orders")


def case_view_of_what_the_clock_says(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT id FROM orders WHERE now() > TIMESTAMP '2024-01-01'")


def case_view_of_an_old_version(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.view("v", "SELECT * FROM orders VERSION AS OF 0")


def case_view_that_is_partitioned(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("CREATE MATERIALIZED VIEW v PARTITIONED BY (name) AS SELECT * FROM orders")


def case_view_whose_table_was_changed_by_others(lake: Lake) -> Attempt:
    view = spend(lake)
    modify.delete(view.table.storage, "total = 0")
    refresh: Attempt = view.refresh
    return refresh


def case_strict_view_whose_changes_are_gone(lake: Lake) -> Attempt:
    view = spend(lake, policy="strict")
    lake.catalog.drop("orders")
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


def case_view_that_was_never_built(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.view("spend", SPEND)
    return lambda: lake.sql("SELECT name FROM orders JOIN spend USING (name)")


def case_view_whose_source_was_never_built(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.view("spend", SPEND)
    view = lake.view("big", "SELECT name FROM spend WHERE total > 1")
    with suppress(HeadwaterError):
        view.refresh(cascade=False)  # it leaves the file of its lock
    return lambda: view.refresh(cascade=False)


def case_table_that_views_read_is_dropped(lake: Lake) -> Attempt:
    spend(lake)
    lake.view("big", "SELECT name FROM spend WHERE total > 1")
    return lambda: lake.sql("DROP TABLE orders")


def case_view_that_a_view_reads_is_dropped(lake: Lake) -> Attempt:
    spend(lake)
    lake.view("big", "SELECT name FROM spend WHERE total > 1")
    return lambda: lake.drop_view("spend")


def case_view_whose_source_is_gone(lake: Lake) -> Attempt:
    view = spend(lake)
    lake.catalog.drop("orders")
    refresh: Attempt = view.refresh
    return refresh


def case_view_that_reads_a_view_that_cannot_be_refreshed(lake: Lake) -> Attempt:
    spend(lake)
    view = lake.view("big", "SELECT name FROM spend WHERE total > 1")
    lake.catalog.drop("orders")
    refresh: Attempt = view.refresh
    return refresh


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
