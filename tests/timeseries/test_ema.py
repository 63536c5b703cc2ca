"""Exponential averages are the recursion, over the whole series."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, by_series, random_rows
from tests.timeseries.test_rolling import number

from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.ema import Decay, Ema
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

ROWS = [
    Decay(alpha=a, adjust=adjust, skip=skip)
    for a in (0.1, 0.5, 1.0)
    for adjust in (False, True)
    for skip in (True, False)
]


def by_weights(values: list[float | None], decay: Decay) -> float | None:
    """The average by its definition: the weight of each value so far, from its age."""
    ages, values_seen = [], []
    age = 0
    for value in reversed(values):
        if value is not None:
            ages.append(age)
            values_seen.append(value)
            age += 1
        elif not decay.skip:
            age += 1
    if not values_seen:
        return None
    keep = 1.0 - decay.alpha
    # A value that is the latest at the end of `values` has age 0; nulls behind it do not change the mean.
    weights = [keep ** (a - ages[0]) for a in ages]
    if decay.adjust:
        return math.fsum(w * v for w, v in zip(weights, values_seen, strict=True)) / math.fsum(weights)
    mean = values_seen[-1]
    for k in range(len(values_seen) - 2, -1, -1):
        old = keep ** (ages[k + 1] - ages[k])
        mean = (old * mean + decay.alpha * values_seen[k]) / (old + decay.alpha)
    return mean


def check(table: pa.Table, decay: Decay, expected: Any) -> None:
    found = {row["seq"]: row["e"] for row in answer(Ema(Values(table), ORDERING, {"e": "x"}, decay, "ema"))}
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            wanted = expected(rows[: at + 1])
            if wanted is None:
                assert found[row["seq"]] is None
            else:
                assert found[row["seq"]] == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("decay", ROWS, ids=str)
def test_by_rows(decay: Decay) -> None:
    check(random_rows(3), decay, lambda rows: by_weights([r["x"] for r in rows], decay))


@pytest.mark.parametrize(("kind", "half_life"), [("timestamp", 700_000), ("date", 3), ("whole", 4)])
def test_by_time(kind: str, half_life: int) -> None:
    def expected(rows: list[dict[str, Any]]) -> float | None:
        mean, at = None, 0
        for row in rows:
            time = number(row["t"])
            if row["x"] is None or time is None:
                continue
            keep = 0.0 if mean is None else 2.0 ** (-(time - at) / half_life)
            mean = row["x"] if mean is None else keep * mean + (1 - keep) * row["x"]
            at = time
        return mean

    check(random_rows(5, kind=kind), Decay(half_life=half_life), expected)


def test_as_pandas_has_it() -> None:
    table = random_rows(8, rows=50)
    values = pa.table({"t": np.arange(50), "x": table["x"]})
    for decay in ROWS:
        found = run_here(Ema(Values(values), Ordering("t"), {"e": "x"}, decay, "ema"))["e"].to_pandas()
        wanted = (
            pd.Series(values["x"].to_pandas()).ewm(alpha=decay.alpha, adjust=decay.adjust, ignore_na=decay.skip).mean()
        )
        pd.testing.assert_series_equal(found, wanted, check_names=False, rtol=1e-12)


def test_other_numbers() -> None:
    table = random_rows(2)
    for column in ("i", "d"):
        node = Ema(Values(table), ORDERING, {"e": column}, Decay(alpha=0.5), "ema")
        assert node.schema.field("e").type == pa.float64()
        assert any(row["e"] is not None for row in answer(node))
