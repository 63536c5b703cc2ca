"""Consolidating rows against plain Python: hot keys, collisions of hashes, words near and far apart, long texts, and what needs pieces."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.incremental.layout import Layout, Order
from headwater.incremental.zset import ZSet
from headwater.kernels.consolidate import is_consolidated

_I64 = pa.int64()
_NUMBERS = Layout(pa.schema([("g", _I64), ("v", _I64)]), keys=1, order=[Order("v")])
_DOWN = Layout(pa.schema([("g", _I64), ("v", _I64)]), keys=1, order=[Order("v", True)])
_TEXTS = Layout(pa.schema([("g", _I64), ("v", pa.string())]), keys=1, order=[Order("v")])
_NAMED = Layout(pa.schema([("g", pa.string()), ("v", _I64)]), keys=1, order=[Order("v")])
_PLAIN = Layout(pa.schema([("g", _I64), ("v", _I64)]), keys=2)


def _table(rng: np.random.Generator, layout: Layout, rows: int, keys: int, spread: int) -> pa.Table:
    values = rng.integers(-spread, spread, rows, endpoint=True)
    v: pa.Array = pa.array(values, mask=rng.random(rows) < 0.05)
    if layout is _TEXTS:
        v = pa.array([None if x is None else "x" * (x % 23) + str(x) for x in v.to_pylist()], pa.string())
    g = pa.array(rng.integers(0, keys, rows), mask=rng.random(rows) < 0.02)
    if layout is _NAMED:
        g = pa.array([None if x is None else "g" * (x % 19) + str(x) for x in g.to_pylist()], pa.string())
    return pa.table({"g": g, "v": v})


def _check(zset: ZSet, hashes: np.ndarray | None = None) -> ZSet:
    layout = zset.layout
    found = ZSet(layout, zset.rows, zset.owners, hashes=hashes).consolidate()
    assert is_consolidated(found.hashes, found.rows, 0, layout.sort_parts, layout.payload)
    expected: Counter[tuple[object, object]] = Counter()
    for row in zset.to_arrow().to_pylist():
        expected[row["g"], row["v"]] += row["_weight"]
    rows = found.to_arrow().to_pylist()
    assert {(r["g"], r["v"]): r["_weight"] for r in rows} == {k: n for k, n in expected.items() if n}
    assert len(rows) == len(found)
    return found


@given(
    st.sampled_from([_NUMBERS, _DOWN, _TEXTS, _NAMED, _PLAIN]),
    st.sampled_from([0, 1, 2, 3, 17, 65, 200, 1500]),
    st.sampled_from([1, 2, 5, 60, 10_000]),
    st.sampled_from([0, 3, 300, 1 << 40, (1 << 63) - 1]),
    st.integers(0, 10**6),
)
@settings(max_examples=2 * settings().max_examples)
def test_rows_come_out_sorted_and_added_up(layout: Layout, rows: int, keys: int, spread: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    _check(ZSet.packed(layout, _table(rng, layout, rows, keys, spread), rng.choice([-1, 1, 2], rows)))


@given(st.lists(st.one_of(st.text(max_size=30), st.text("\0a\x7f\x80é", max_size=16)), max_size=60, unique=True))
def test_texts_are_in_the_order_of_their_bytes(texts: list[str]) -> None:
    """Short and long ones, zeros and bytes above 127 among them; all of one key, so that nothing but the texts decides."""
    found = ZSet.packed(_TEXTS, pa.table({"g": pa.array([1] * len(texts), _I64), "v": pa.array(texts, pa.string())}))
    assert found.consolidate().to_arrow()["v"].to_pylist() == sorted(texts, key=str.encode)


@given(st.sampled_from([_NUMBERS, _NAMED, _TEXTS]), st.integers(2, 300), st.integers(1, 4), st.integers(0, 10**6))
def test_keys_whose_hashes_collide_stay_apart(layout: Layout, rows: int, hashes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    zset = ZSet.packed(layout, _table(rng, layout, rows, 6, 20), rng.choice([-1, 1], rows))
    few = (zset.hashes % np.uint64(hashes)) << np.uint64(60)
    found = _check(zset, few)
    together = [r["g"] for r in found.to_arrow().to_pylist()]
    for h in np.unique(found.hashes):
        some = [g for g, x in zip(together, found.hashes.tolist(), strict=True) if x == h]
        assert len([1 for a, b in itertools.pairwise(some) if a != b]) == len(set(some)) - 1


@pytest.mark.parametrize("layout", [_NUMBERS, _PLAIN])
def test_what_is_larger_than_the_cache_is_divided(layout: Layout) -> None:
    rng = np.random.default_rng(1)
    rows = 1_100_000
    table = pa.table({"g": rng.integers(0, 1 << 60, rows), "v": rng.integers(0, 9, rows)})
    twice = pa.concat_tables([table, table.slice(0, 1000)]).combine_chunks()
    weights = np.ones(rows + 1000, dtype=np.int64)
    weights[rows:] = -1
    found = ZSet.packed(layout, twice, weights).consolidate()
    assert is_consolidated(found.hashes, found.rows, 0, layout.sort_parts, layout.payload)
    assert len(found) == rows - 1000
    assert found.rows[:, 1].sum() == table["g"].to_numpy()[1000:].sum()
