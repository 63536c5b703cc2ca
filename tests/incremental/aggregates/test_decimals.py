"""sum and avg of decimals."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.incremental.aggregates.registry import aggregation

from .histories import SCHEMA, Checked, Row, check, histories, rows, values

_EXACT = Context(prec=90)


def _total(some: list[Decimal], scale: int) -> Decimal | None:
    found = Decimal(0)
    for x in some:
        found = _EXACT.add(found, x)
    return _EXACT.quantize(found, Decimal(1).scaleb(-scale)) if some else None


def _average(some: list[Decimal], scale: int) -> Decimal | None:
    total = _total(some, scale)
    if total is None:
        return None
    fine = Context(prec=90, rounding=ROUND_HALF_UP)
    quotient = fine.divide(total, Decimal(len(some)))
    return fine.quantize(quotient, Decimal(1).scaleb(-scale - 4))


CASES = {
    "sp": (aggregation("sum", "p", schema=SCHEMA, name="sp"), lambda x: _total(values(x, "p"), 2)),
    "ap": (aggregation("avg", "p", schema=SCHEMA, name="ap"), lambda x: _average(values(x, "p"), 2)),
    "sq": (aggregation("sum", "q", schema=SCHEMA, name="sq"), lambda x: _total(values(x, "q"), 4)),
    "aq": (aggregation("avg", "q", schema=SCHEMA, name="aq"), lambda x: _average(values(x, "q"), 4)),
}


@given(histories(rows()))
def test_histories(history: list[list[Any]]) -> None:
    check(history, CASES)


@given(
    histories(rows(p=st.sampled_from([Decimal("0.01"), Decimal("-0.01"), Decimal("0.02"), Decimal("0.05")])), size=20)
)
def test_half_is_rounded_up(history: list[list[Any]]) -> None:
    check(history, {"ap": CASES["ap"]})


def _narrow(lenient: bool) -> tuple[Checked, Row]:
    schema = pa.schema([pa.field("g", pa.int64()), pa.field("x", pa.decimal128(38, 0))])
    most = Decimal("9" * 38)

    def oracle(some: list[Row]) -> Decimal | None:
        found = _total(values(some, "x"), 0)
        return None if found is None or _EXACT.abs(found) > most else found

    made = aggregation("try_sum" if lenient else "sum", "x", schema=schema, name="s")
    return Checked(["g"], [made], {"s": oracle}, schema), {"g": 1, "x": most}


def test_a_sum_that_does_not_fit_stops_the_step() -> None:
    checked, row = _narrow(False)
    checked.step([("insert", row, 1)])
    checked.step([("insert", {**row, "x": _EXACT.minus(row["x"])}, 2)])
    live, out = list(checked.live), dict(checked.out)
    with pytest.raises(ExpressionError, match=r"(?s)does not fit.*sum\(x\)"):
        checked.step([("insert", {**row, "x": Decimal(-1)}, 1)])
    checked.node.rollback()
    checked.live = live
    assert checked.out == out
    checked.step([("insert", {**row, "x": Decimal(5)}, 1)])


def test_try_sum_gives_null() -> None:
    checked, row = _narrow(True)
    for changes in ([("insert", row, 1)], [("insert", row, 5)], [("delete", 0)] * 4, [("delete", 0)]):
        checked.step(changes)
