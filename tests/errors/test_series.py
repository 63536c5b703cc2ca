"""Series that have no order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headwater.lakehouse import Lake
from headwater.timeseries.methods.ordered import OrderedMethods
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

Attempt = Callable[[], Any]


def case_rows_of_a_series_that_nothing_puts_in_order(lake: Lake) -> Attempt:
    trades = pa.table({"symbol": ["A", "B", "B"], "ts": [1, 7, 7], "price": [1.0, 2.0, 3.0]})
    return lambda: run_here(OrderedMethods(Values(trades)).ordered("ts", by="symbol").shift("price").plan)


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
