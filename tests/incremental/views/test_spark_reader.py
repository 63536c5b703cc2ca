"""A query that our reader refuses and Spark's analyzer reads: the view is defined with Spark, and goes on without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
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
    ours = sorted((r["customer"], r["total"], r["n"]) for r in again.to_pylist())
    assert ours == sorted((r["customer"], r["sum(amount)"], r["count(id)"]) for r in theirs)


_WITH_FUNCTIONS = (
    "FROM orders |> AS o |> EXTEND Tier(amount) AS tier |> AGGREGATE sum(doubled(amount)) AS total GROUP BY tier"
)


def _tier(amount: int | None) -> str | None:
    return None if amount is None else "large" if amount > 5 else "small"


def _register(lake: hw.Lake) -> None:
    lake.function("tier", _tier, arguments=["bigint"], returns="string")
    lake.function("doubled", lambda x: pc.multiply(x, 2), arguments=["bigint"], returns="bigint", vectorised=True)


@pytest.mark.spark
def test_python_functions_in_a_query_that_spark_has_read(spark: Any, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    orders = lake.write("orders", [{"id": i, "amount": i} for i in range(10)])
    with pytest.raises(HeadwaterError):
        lake.view("tiers", _WITH_FUNCTIONS)  # nobody knows them yet
    _register(lake)
    view = lake.view("tiers", _WITH_FUNCTIONS)
    view.refresh()
    found = Definition.of(view.table.snapshot)
    assert found is not None and found.analyzed is not None and sorted(found.functions) == ["doubled", "tier"]
    assert not spark.catalog.functionExists("tier"), "the user's session is as it was"
    live._views.clear()

    without = hw.connect(tmp_path)
    with pytest.raises(hw.NotFoundError, match="E1606"):
        without.view("tiers")
    _register(without)
    orders.append([{"id": 20, "amount": 50}, {"id": 21, "amount": None}])
    orders.delete("id = 1")
    again = without.view("tiers")
    assert again.refresh().mode == "incremental"
    assert again.verify().equal
    rows = sorted(((r["tier"], r["total"]) for r in again.to_pylist()), key=str)
    assert rows == [("large", 2 * (6 + 7 + 8 + 9 + 50)), ("small", 2 * (2 + 3 + 4 + 5)), (None, None)]
