"""Keys that are cut by time give the answer of keys that are not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom

from headwater.base.errors import InputError
from headwater.spark.buckets import hash_of
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.asof import AsOf
from headwater.timeseries.operators.values import Values
from headwater.timeseries.rows import Rows
from headwater.timeseries.running.here import run_here
from headwater.timeseries.slices import HotKey, Sliced, hot_keys


def _table(rng: random.Random, rows: int) -> pa.Table:
    keys = [rng.choice(["hot", "hot", "hot", "warm", "cold", None]) for _ in range(rows)]
    times = [rng.randrange(30) for _ in range(rows)]
    return pa.table(
        {"k": pa.array(keys, pa.string()), "t": pa.array(times, pa.int64()), "n": pa.array(range(rows), pa.int64())}
    )


def _hash(key: str) -> int:
    return int(hash_of([pa.array([key])], 1)[0])


def _sliced(node: AsOf, hot: tuple[HotKey, ...], plain: int, seed: int) -> pa.Table:
    """The join as tasks do it: tables, in pieces, go to buckets, and each bucket is joined."""
    slicing = node.slicing()
    assert slicing is not None
    cut = CutAtRandom(seed)
    arrived: dict[int, list[list[pa.Table]]] = {}
    for side, (below, s, keys) in enumerate(zip(node.inputs, slicing, node.keys(), strict=True)):
        place = Sliced(keys, s.time, plain, hot, s.before, s.after)
        assert isinstance(below, Values)
        for piece in cut(below.table):
            for bucket, rows in place(piece):
                assert 0 <= bucket < place.buckets
                arrived.setdefault(bucket, [[], []])[side].append(rows)
    found = [node.schema.empty_table()]
    for left, right in arrived.values():
        found += node.kernel()(Rows(left, node.left.schema), Rows(right, node.right.schema))
    return pa.concat_tables(found)


@pytest.mark.parametrize("seed", range(60))
def test_slices_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    left, right = _table(rng, rng.randint(0, 60)), _table(rng, rng.randint(0, 80)).rename_columns(["k", "t", "m"])
    direction: Any = rng.choice(["backward", "forward", "nearest"])
    node = AsOf(
        *(Values(left), Values(right), "t", "t", ("k",), ("k",), ("m",), direction),
        tolerance=rng.choice([None, 3]),
        strict=rng.random() < 0.5,
    )
    hot = tuple(
        HotKey(_hash(key), tuple(sorted(rng.sample(range(-1, 32), rng.randint(1, 4)))))
        for key in ("hot", "warm", "absent")
    )
    whole = run_here(node)
    assert sorted(_sliced(node, hot, 3, seed).to_pylist(), key=str) == sorted(whole.to_pylist(), key=str)


@pytest.mark.parametrize("seed", range(20))
def test_slices_of_everything_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    left, right = _table(rng, rng.randint(0, 60)), _table(rng, rng.randint(0, 80)).rename_columns(["k", "t", "m"])
    direction: Any = rng.choice(["backward", "forward", "nearest"])
    node = AsOf(Values(left), Values(right), "t", "t", (), (), ("m",), direction, strict=rng.random() < 0.5)
    hot = (HotKey(int(hash_of([], 1)[0]), tuple(sorted(rng.sample(range(-1, 32), rng.randint(1, 4))))),)
    whole = run_here(node)
    assert sorted(_sliced(node, hot, 1, seed).to_pylist(), key=str) == sorted(whole.to_pylist(), key=str)


def test_a_tie_just_before_a_slice_is_still_refused() -> None:
    left = pa.table({"k": ["hot"], "t": [9]})
    right = pa.table({"k": ["hot", "hot"], "t": [4, 4], "v": [1, 2]})
    node = AsOf(Values(left), Values(right), "t", "t", ("k",), ("k",))
    for seed in range(5):
        with pytest.raises(InputError, match="two rows at 4"):
            _sliced(node, (HotKey(_hash("hot"), (5,)),), 2, seed)


def test_hot_keys_are_found_and_cut_evenly() -> None:
    rng = np.random.default_rng(5)
    keys = np.where(rng.random(50_000) < 0.3, "hot", rng.integers(0, 500, 50_000).astype(str))
    sample = pa.table({"k": keys, "t": rng.integers(0, 1_000, 50_000)})
    found = hot_keys([(sample, 100.0), (sample, 1.0)], [("k",), ("k",)], ["t", "t"], 300_000)
    assert [h.hash for h in found] == [_hash("hot")]
    assert len(found[0].cuts) == 5  # 1.5 million rows in slices of 300,000
    assert np.allclose(np.diff([0, *found[0].cuts, 1_000]), 1_000 / 6, atol=30)
    assert hot_keys([(sample, 1.0)], [("k",)], ["t"], 300_000) == ()
    assert hot_keys([(sample.slice(0, 0), 1.0)], [("k",)], ["t"], 1) == ()
    same = sample.set_column(1, "t", pa.array(np.zeros(50_000, np.int64)))
    assert all(len(h.cuts) <= 1 for h in hot_keys([(same, 100.0)], [("k",)], ["t"], 300_000))


def test_ordering_is_the_streams() -> None:
    assert Ordering("t", ("k",), ("n",)).columns == ("k", "t", "n")
