"""Series that have no order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.lakehouse import Lake
from headwater.timeseries.methods.ordered import OrderedMethods
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

Attempt = Callable[[], Any]


def case_rows_of_a_series_that_nothing_puts_in_order(lake: Lake) -> Attempt:
    trades = pa.table({"symbol": ["A", "B", "B"], "ts": [1, 7, 7], "price": [1.0, 2.0, 3.0]})
    return lambda: run_here(OrderedMethods(Values(trades)).ordered("ts", by="symbol").shift("price").plan)


def case_a_function_of_batches_that_raises(lake: Lake) -> Attempt:
    def per_share(rows: pa.Table) -> dict[str, list[float]]:
        return {"v": [1 / min(rows["size"].to_pylist())]}

    trades = lake.stream(pa.table({"size": [4, 0]}))
    return lambda: run_here(trades.transform(per_share, schema={"v": pa.float64()}).plan)


def case_an_expression_of_another_library(lake: Lake) -> Attempt:
    trades = lake.stream(pa.table({"size": [4, 0]}))
    return lambda: trades.filter(pc.field("size") > 3)


def case_a_column_with_a_window_of_its_own(lake: Lake) -> Attempt:
    from pyspark.sql.connect import functions as F  # noqa: N812  (its users' name for it)
    from pyspark.sql.connect.window import Window

    trades = lake.stream(pa.table({"size": [4, 0]}))
    return lambda: trades.with_columns(total=F.sum("size").over(Window.orderBy("size")))


def case_a_column_without_a_name(lake: Lake) -> Attempt:
    from pyspark.sql.connect import functions as F  # noqa: N812

    trades = lake.stream(pa.table({"size": [4, 0]}))
    return lambda: trades.agg(F.sum("size"))


def case_a_part_of_a_delta_table_read_as_files(lake: Lake) -> Attempt:
    lake.write("trades", pa.table({"day": ["monday"], "size": [4]}), partition_by=["day"])
    return lambda: lake.stream(f"{lake.catalog.root.url}/trades/day=monday")


def case_a_row_without_a_time(lake: Lake) -> Attempt:
    trades = lake.stream(pa.table({"ts": pa.array([1, None, 3], pa.int64()), "size": [4, 0, 2]}), time="ts")
    return lambda: run_here(trades.shift("size").plan)


def case_a_length_of_no_unit(lake: Lake) -> Attempt:
    trades = lake.stream(pa.table({"ts": pa.array([1], pa.timestamp("us")), "size": [4]}), time="ts")
    return lambda: trades.join_asof(trades, tolerance="5 parsecs")


def case_a_month_where_only_a_fixed_length_works(lake: Lake) -> Attempt:
    trades = lake.stream(pa.table({"ts": pa.array([1], pa.timestamp("us")), "size": [4]}), time="ts")
    return lambda: trades.rolling("1 month", total="sum(size)")


def case_intervals_that_say_two_things(lake: Lake) -> Attempt:
    rows = pa.table({"room": ["b", "b"], "start": [1, 3], "end": [5, 9], "guest": ["Ann", "Ben"]})
    stays = lake.stream(rows, time="start", by="room").intervals(end="end")
    return lambda: run_here(stays.disjoint().to_stream().plan)


def case_an_interval_that_ends_before_it_begins(lake: Lake) -> Attempt:
    rows = pa.table({"room": ["b"], "start": [5], "end": [4], "guest": ["Ann"]})
    stays = lake.stream(rows, time="start", by="room").intervals(end="end")
    return lambda: run_here(stays.disjoint().to_stream().plan)


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
