"""Keys of joins in time: several of them, and values that SQL takes for equal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import InputError
from headwater.timeseries.methods.joins import JoinMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

NAN = float("nan")
BUDGETS = (1 << 30, 1)
"""What fits into memory, and what does not and is walked."""


def _stream(columns: dict[str, Any], by: tuple[str, ...]) -> JoinMethods:
    return JoinMethods(Values(pa.table(columns)), Ordering("t", by))


@pytest.mark.parametrize("times", [range(60_000), [i * 2**40 for i in range(60_000)]], ids=["near", "far"])
def test_keys_of_several_columns_with_many_values(times: Any) -> None:
    by = ("user", "device", "session")
    rows = 60_000
    columns: dict[str, Any] = {
        "user": range(rows),
        "device": [f"d{i}" for i in range(rows)],
        "session": range(rows, 0, -1),
    }
    right = _stream({**columns, "t": times, "v": range(rows)}, by)
    # Every other row has a session that was never seen with its user and device.
    asked = {**columns, "session": [s - i % 2 for i, s in enumerate(columns["session"])]}
    left = _stream({**asked, "t": times}, by)
    found = run_here(left.join_asof(right).plan).sort_by("user")["v"].to_pylist()
    assert found == [None if i % 2 else i for i in range(rows)]
    assert run_here(left.join_range(right, before=1).plan).num_rows == rows // 2


@pytest.mark.parametrize("budget", BUDGETS)
def test_one_zero_and_one_nan(budget: int) -> None:
    left = _stream({"k": [0.0, -0.0, NAN, None], "t": [5] * 4, "n": [0, 1, 2, 3]}, ("k",))
    right = _stream({"k": [-0.0, NAN, None], "t": [1, 1, 1], "v": ["zero", "nan", "null"]}, ("k",))
    for joined in (left.join_asof(right), left.join_range(right, before=10, how="left")):
        found = run_here(joined.plan, budget_bytes=budget).sort_by("n")
        assert found["v"].to_pylist() == ["zero", "zero", "nan", None]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(
    "kinds", [(pa.int64(), pa.int32()), (pa.int32(), pa.int64()), (pa.int8(), pa.int16())], ids=str
)
def test_whole_numbers_of_different_width(kinds: tuple[pa.DataType, pa.DataType], budget: int) -> None:
    big = [2**40 if kind == pa.int64() else 7 for kind in kinds]
    left = _stream({"k": pa.array([1, big[0]], kinds[0]), "t": [5, 5], "n": [0, 1]}, ("k",))
    right = _stream({"k": pa.array([big[1], 1], kinds[1]), "t": [1, 1], "v": ["big", "one"]}, ("k",))
    for joined in (left.join_asof(right), left.join_range(right, before=10, how="left")):
        found = run_here(joined.plan, budget_bytes=budget).sort_by("n")["v"].to_pylist()
        assert found == ["one", "big" if big[0] == big[1] else None]


def test_a_suffix_that_makes_no_name() -> None:
    left, right = _stream({"t": [1], "v": [1]}, ()), _stream({"t": [1], "v": [1]}, ())
    for join in (left.join_asof, left.join_range):
        with pytest.raises(InputError, match="`suffix` is ''"):
            join(right, suffix="")
    assert left.join_asof(_stream({"t": [1], "V": [1]}, ())).columns == ["t", "v", "t_right", "V_right"]
