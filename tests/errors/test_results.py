"""Results that are asked for what they do not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headwater.lakehouse import Lake
from headwater.query.result import Result

Attempt = Callable[[], Any]


def rows(lake: Lake) -> Result:
    return Result(pa.table({"id": [1, 2], "name": ["a", "b"]}).to_reader())


def case_result_read_twice(lake: Lake) -> Attempt:
    result = rows(lake)
    list(result)
    return result.to_arrow


def case_result_read_after_close(lake: Lake) -> Attempt:
    result = rows(lake)
    result.close()
    return result.to_dicts


def case_result_that_was_cancelled(lake: Lake) -> Attempt:
    result = rows(lake)
    result.cancel()
    return result.to_arrow


def case_scalar_of_a_result_with_rows(lake: Lake) -> Attempt:
    return rows(lake).scalar


def case_scalar_of_an_empty_result(lake: Lake) -> Attempt:
    return Result.of(pa.table({"n": pa.array([], pa.int64())}), "SELECT").scalar


def case_dicts_of_columns_with_one_name(lake: Lake) -> Attempt:
    return Result.of(pa.table([[1], [2]], names=["id", "id"]), "SELECT").to_dicts


def case_timestamp_that_python_cannot_hold(lake: Lake) -> Attempt:
    return Result.of(pa.table({"t": pa.array([5 * 10**17], pa.timestamp("us", "UTC"))}), "SELECT").to_dicts


def case_show_of_a_negative_number_of_rows(lake: Lake) -> Attempt:
    return lambda: rows(lake).show(-1)


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
