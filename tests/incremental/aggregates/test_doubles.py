"""Sums and averages of floats: the true sum, rounded once."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.incremental.aggregates.registry import aggregation
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.zset import ZSet, concatenate

from .histories import DOUBLES, SCHEMA, SPECIAL_DOUBLES, Source, check, fsum, histories, rows, values

_D = st.one_of(st.none(), SPECIAL_DOUBLES)
_MANY = st.one_of(
    DOUBLES, st.sampled_from([1e308, -1e308, 1.7976931348623157e308, 2.0**-1074, 2.0**970, 1.0, 2.0**-53])
)


def _average(some: list[float]) -> float | None:
    return fsum(some) / len(some) if some else None


CASES = {
    "s": (aggregation("sum", "d", schema=SCHEMA, name="s"), lambda x: fsum(values(x, "d")) if values(x, "d") else None),
    "a": (aggregation("avg", "d", schema=SCHEMA, name="a"), lambda x: _average(values(x, "d"))),
    "f": (
        aggregation("sum", "f", schema=SCHEMA, name="f_"),
        lambda x: fsum(values(x, "f")) if values(x, "f") else None,
    ),
    "n": (aggregation("count", schema=SCHEMA, name="n_"), len),
    "v": (aggregation("sum", "n", schema=SCHEMA, name="v_"), lambda x: sum(values(x, "n")) if x else None),
    "w": (
        aggregation("sum", "d", schema=SCHEMA, name="w_", where="w"),
        lambda x: (
            fsum([r["d"] for r in x if r["w"] and r["d"] is not None])
            if any(r["w"] and r["d"] is not None for r in x)
            else None
        ),
    ),
}


@given(histories(rows(d=_D)))
def test_histories(history: list[list[Any]]) -> None:
    check(history, CASES)


@given(histories(rows(d=_D)))
@settings(max_examples=20, deadline=None)
def test_histories_without_keys(history: list[list[Any]]) -> None:
    check(history, CASES, ())


def _summed(batches: list[tuple[list[float], list[int]]]) -> float | None:
    source = Source(pa.schema([pa.field("d", pa.float64())]))
    node = Aggregate(source, [], [aggregation("sum", "d", schema=source.layout.schema, name="s")])
    outs = []
    for numbers, weights in batches:
        table = pa.table({"d": pa.array(numbers, pa.float64())})
        outs.append(node.step([ZSet.packed(source.layout, table, np.array(weights, dtype=np.int64))]))
        node.commit()
    (row,) = concatenate(outs, node.layout).consolidate().to_arrow().to_pylist()
    assert row.pop("_weight") == 1
    found: float | None = row["s"]
    return found


@given(st.lists(_MANY, max_size=60))
@settings(max_examples=2 * settings().max_examples)
def test_the_sum_is_rounded_once(numbers: list[float]) -> None:
    found = _summed([(numbers, [1] * len(numbers))])
    assert found == (fsum(numbers) if numbers else None)
    try:
        exact = math.fsum(numbers)
    except OverflowError:
        return
    assert found == (exact if numbers else None)


@given(st.lists(_MANY, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_what_came_and_went_leaves_nothing(numbers: list[float], chance: random.Random) -> None:
    kept = numbers[: len(numbers) // 2 + 1]
    gone = numbers[len(kept) :]
    once = _summed([(kept, [1] * len(kept))])
    mixed = [*((x, 1) for x in numbers), *((x, 1000) for x in gone)]
    back = [*((x, -1) for x in gone), *((x, -1000) for x in gone)]
    chance.shuffle(mixed)
    chance.shuffle(back)
    steps = [mixed[k : k + 3] for k in range(0, len(mixed), 3)] + [back[k : k + 5] for k in range(0, len(back), 5)]
    assert _summed([([x for x, _ in s], [w for _, w in s]) for s in steps]) == once


def test_half_way_goes_to_the_even_one() -> None:
    assert _summed([([1.0, 2.0**-53], [1, 1])]) == 1.0
    assert _summed([([1.0, 2.0**-53, 2.0**-1074], [1, 1, 1])]) == 1.0000000000000002
    assert _summed([([1.0 + 2.0**-52, 2.0**-53], [1, 1])]) == 1.0 + 2.0**-51
    assert _summed([([-1.0, -(2.0**-53), -(2.0**-1074)], [1, 1, 1])]) == -1.0000000000000002


def test_what_is_too_large_is_infinite_and_comes_back() -> None:
    most = 1.7976931348623157e308
    assert _summed([([most, most], [1, 1])]) == math.inf
    assert _summed([([most, most], [1, 1]), ([most], [-1])]) == most
    assert _summed([([most, 2.0**969], [1, 1])]) == most
    assert _summed([([most, 2.0**970], [1, 1])]) == math.inf
