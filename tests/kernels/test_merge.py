"""Merging runs and consolidating rows: against plain Python, for sizes alike and very different, with strings and with bounds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.incremental.layout import Layout
from headwater.incremental.run import Run, merged
from headwater.incremental.zset import ZSet
from headwater.kernels.consolidate import is_consolidated

_I64 = pa.int64()
_WORDS = Layout(pa.schema([pa.field("k", _I64, False), pa.field("v", _I64, False)]), keys=1)
_TEXTS = Layout(pa.schema([pa.field("k", pa.string()), pa.field("v", _I64, False)]), keys=1)


def _zset(layout: Layout, rows: int, keys: int, seed: int, *, signs: bool) -> ZSet:
    rng = np.random.default_rng(seed)
    k = rng.integers(0, keys, rows)
    column = (
        k
        if layout is _WORDS
        else pa.array([None if i == 0 else f"{i}" * (int(i) % 20) for i in k.tolist()], pa.string())
    )
    table = pa.table({"k": column, "v": rng.integers(0, 5, rows)}, schema=layout.schema)
    return ZSet.packed(layout, table, rng.choice([-1, 1, 2] if signs else [1], rows))


def _counted(zset: ZSet) -> Counter[tuple[object, int]]:
    table = zset.to_arrow()
    found: Counter[tuple[object, int]] = Counter()
    for k, v, w in zip(*(c.to_pylist() for c in table.columns), strict=True):
        found[k, v] += w
    return Counter({row: n for row, n in found.items() if n})


def _valid(run: Run) -> bool:
    tops = run.hashes >> np.uint64(64 - run.bits)
    entries = np.searchsorted(tops, np.arange((1 << run.bits) + 1, dtype=np.uint64))
    return (run.directory == entries).all() and is_consolidated(
        run.hashes, run.rows, int(run.line[2]), run.layout.sort_parts, run.layout.payload
    )


_SIZES = st.sampled_from([0, 1, 2, 7, 40, 300])


@given(st.sampled_from([_WORDS, _TEXTS]), _SIZES, _SIZES, st.sampled_from([1, 4, 1000]), st.integers(0, 10**6))
def test_the_sum_of_two_runs(layout: Layout, left: int, right: int, keys: int, seed: int) -> None:
    a, b = _zset(layout, left, keys, seed, signs=True), _zset(layout, right, keys, seed + 1, signs=True)
    one, two = Run.of(a), Run.of(b)
    assert _valid(one)
    assert _counted(one.zset()) == _counted(a)
    for run in (merged([one, two]), merged([two, one])):
        assert _valid(run)
        assert _counted(run.zset()) == _counted(a + b)
        assert run.most >= max((abs(n) for n in _counted(a + b).values()), default=0)
    assert len(merged([one, Run.of(-a)])) == 0


@given(st.sampled_from([_WORDS, _TEXTS]), _SIZES, _SIZES, st.integers(0, 10**6), st.integers(-1, 6))
def test_rows_below_a_bound_are_left_out(layout: Layout, left: int, right: int, seed: int, bound: int) -> None:
    a, b = _zset(layout, left, 9, seed, signs=True), _zset(layout, right, 9, seed + 1, signs=True)
    run = merged([Run.of(a), Run.of(b)], (layout.column("v").word, bound))
    assert _valid(run)
    assert _counted(run.zset()) == {row: n for row, n in _counted(a + b).items() if row[1] >= bound}


@given(
    st.integers(0, 3000),
    st.sampled_from([1, 2, 50]),
    st.integers(0, 10**6),
    st.sampled_from(["random", "sorted", "reversed"]),
)
def test_hot_keys_in_any_order(rows: int, keys: int, seed: int, arrival: str) -> None:
    rng = np.random.default_rng(seed)
    v = np.arange(rows) if arrival != "random" else rng.permutation(rows)
    v = v[::-1].copy() if arrival == "reversed" else v
    run = Run.of(ZSet.packed(_WORDS, pa.table({"k": v % keys, "v": v}, schema=_WORDS.schema)))
    assert _valid(run)
    assert sorted(run.rows[:, 2].tolist()) == list(range(rows))
