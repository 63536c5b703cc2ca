"""A query that our reader refuses and Spark's analyzer reads: the view is defined with Spark, and goes on without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.incremental.views import live
from headwater.incremental.views.definition import Definition

# Our reader does not know these steps of Spark's pipes.
_PIPED = "FROM orders |> AS o |> WHERE o.amount > 3 |> AGGREGATE sum(amount) AS total, count(*) AS n GROUP BY customer"


@pytest.mark.spark
def test_a_view_that_spark_has_read_needs_no_spark(spark: Any, tmp_path: Path) -> None:
    rows = [{"id": i, "customer": f"c{i % 3}", "amount": i} for i in range(12)]
    hw.connect(tmp_path).write("orders", rows)
    with pytest.raises(HeadwaterError):
        hw.connect(tmp_path).view("spend", _PIPED)
    lake = hw.connect(tmp_path, spark=spark)
    view = lake.view("spend", _PIPED)
    view.refresh()
    found = Definition.of(view.table.snapshot)
    assert found is not None and found.analyzed is not None
    live._views.clear()  # as another process finds it

    without = hw.connect(tmp_path)
    orders = without.table("orders")
    orders.append([{"id": 20, "customer": "c1", "amount": 50}])
    orders.delete("id = 11")
    again = without.view("spend")
    assert again.refresh().mode == "incremental"
    assert again.verify().equal
    expected = spark.createDataFrame(orders.to_arrow()).where("amount > 3").groupBy("customer")
    theirs = expected.agg({"amount": "sum", "id": "count"}).collect()
    ours = sorted((r["customer"], r["total"], r["n"]) for r in again.read().to_pylist())
    assert ours == sorted((r["customer"], r["sum(amount)"], r["count(id)"]) for r in theirs)
