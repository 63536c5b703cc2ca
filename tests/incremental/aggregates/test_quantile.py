"""Percentiles and medians."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.incremental.aggregates.registry import aggregation
from headwater.incremental.layout import Order
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.zset import ZSet

from .histories import SCHEMA, SPECIAL_DOUBLES, Row, Source, check, histories, rows, values


def _sorted(some: list[Any]) -> list[Any]:
    key = lambda v: (math.isnan(v), v, math.copysign(1, v)) if isinstance(v, float) else v  # noqa: E731
    return sorted(some, key=key)


def continuous(column: str, share: float, distinct: bool = False) -> Callable[[list[Row]], float | None]:
    def oracle(some: list[Row]) -> float | None:
        kept = [float(v) for v in _sorted(_some(some, column, distinct))]
        if not kept:
            return None
        place = (len(kept) - 1) * share
        low, high = math.floor(place), math.ceil(place)
        if low == high or kept[low] == kept[high]:
            return kept[low]
        return (high - place) * kept[low] + (place - low) * kept[high]

    return oracle


def discrete(column: str, share: float, descending: bool = False, double: bool = False) -> Callable[[list[Row]], Any]:
    def oracle(some: list[Row]) -> Any:
        kept = _sorted(values(some, column))
        if not kept:
            return None
        kept = kept[::-1] if descending else kept
        found = kept[max(0, math.ceil(share * len(kept)) - 1)]
        return float(found) if double else found

    return oracle


def _some(some: list[Row], column: str, distinct: bool) -> list[Any]:
    found = values(some, column)
    return list(set(found)) if distinct else found


def of(function: str, column: str, name: str, **more: Any) -> Any:
    return aggregation(function, column, schema=SCHEMA, name=name, **more)


CASES: dict[str, Any] = {
    "median": (of("median", "v", "median"), continuous("v", 0.5)),
    "mediand": (of("median", "d", "mediand"), continuous("d", 0.5)),
    "medianp": (of("median", "p", "medianp"), continuous("p", 0.5)),
    "medianq": (of("median", "q", "medianq"), continuous("q", 0.5)),
    "p0": (of("percentile", "v", "p0", share=0.0), continuous("v", 0.0)),
    "p9": (of("percentile", "v", "p9", share=0.9), continuous("v", 0.9)),
    "p1": (of("percentile", "n", "p1", share=1), continuous("n", 1.0)),
    "cont": (
        of("percentile_cont", "i", "cont", share=0.25, order=[Order("i", descending=True)]),
        continuous("i", 0.75),
    ),
    "disc": (of("percentile_disc", "v", "disc", share=0.3), discrete("v", 0.3, double=True)),
    "discd": (
        of("percentile_disc", "i", "discd", share=0.3, order=[Order("i", descending=True)]),
        discrete("i", 0.3, descending=True, double=True),
    ),
    "approx": (of("approx_percentile", "v", "approx", share=0.7), discrete("v", 0.7)),
    "approxd": (of("approx_percentile", "d", "approxd", share=0.2), discrete("d", 0.2)),
    "approxf": (of("approx_percentile", "f", "approxf", share=0.2), discrete("f", 0.2)),
    "approxq": (of("approx_percentile", "q", "approxq", share=0.5), discrete("q", 0.5)),
    "approxt": (of("approx_percentile", "t", "approxt", share=0.5), discrete("t", 0.5)),
    "distinct": (of("median", "n", "distinct", distinct=True), continuous("n", 0.5, distinct=True)),
    "where": (of("median", "n", "where", where="w"), lambda x: continuous("n", 0.5)([r for r in x if r["w"]])),
}


@pytest.mark.parametrize("keys", [("g",), (), ("h", "k")])
@given(histories(rows(d=st.one_of(st.none(), SPECIAL_DOUBLES)), size=12))
def test_histories(keys: tuple[str, ...], history: list[list[Any]]) -> None:
    check(history, CASES, keys)


@given(histories(rows(g=st.just(1), v=st.integers(0, 30)), steps=25, size=5))
def test_long_histories_of_one_group(history: list[list[Any]]) -> None:
    check(history, {k: CASES[k] for k in ("median", "p9", "disc", "p0")})


def test_decimals_are_read_as_they_are() -> None:
    x = {**dict.fromkeys(SCHEMA.names), "n": 0, "g": 1}
    history = [[("insert", {**x, "q": Decimal("0.1000")}, 1), ("insert", {**x, "q": Decimal("0.2000")}, 1)]]
    check(history, {"m": CASES["medianq"]})


@pytest.mark.parametrize("share", [-0.1, 1.5, None])
def test_shares_are_from_0_to_1(share: float | None) -> None:
    with pytest.raises(ExpressionError, match="share"):
        aggregation("percentile", "v", schema=SCHEMA, share=share)


def test_a_hot_group_costs_its_change() -> None:
    schema = pa.schema([pa.field("g", pa.int64(), nullable=False), pa.field("v", pa.int64(), nullable=False)])
    source = Source(schema)
    node = Aggregate(source, ["g"], [aggregation("median", "v", schema=schema, name="m")])
    rng = np.random.default_rng(1)

    def feed(count: int) -> float:
        table = pa.table({"g": np.zeros(count, dtype=np.int64), "v": rng.integers(0, 1 << 40, count)}, schema=schema)
        begin = time.process_time()
        node.step([ZSet.packed(source.layout, table)])
        node.commit()
        return time.process_time() - begin

    feed(1_000)
    few = sorted(feed(50) for _ in range(40))[20]
    feed(300_000)
    many = sorted(feed(50) for _ in range(40))[20]
    assert many < 10 * few + 0.002
