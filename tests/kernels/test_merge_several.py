"""The sum of several runs is that of two by two, to the byte, however it is made."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ConstraintError
from headwater.incremental.layout import Layout
from headwater.incremental.run import Run, merged
from headwater.incremental.zset import ZSet

_I64 = pa.int64()
_WORDS = Layout(pa.schema([pa.field("k", _I64, False), pa.field("v", _I64, False)]), keys=1)
_TEXTS = Layout(pa.schema([pa.field("k", pa.string()), pa.field("v", _I64, False)]), keys=1)


def _run(layout: Layout, rows: int, keys: int, rng: np.random.Generator) -> Run:
    k = rng.integers(0, keys, rows)
    column = k if layout is _WORDS else pa.array([None if i == 0 else f"{i}" * (int(i) % 20) for i in k.tolist()])
    table = pa.table({"k": column, "v": rng.integers(0, 5, rows)}, schema=layout.schema)
    return Run.of(ZSet.packed(layout, table, rng.choice([-1, 1, 2], rows)))


def _facts(run: Run) -> tuple[object, ...]:
    return run.hashes.tolist(), run.zset().to_arrow().to_pylist(), run.directory.tolist() if run.bits < 8 else run.bits


@given(
    st.sampled_from([_WORDS, _TEXTS]),
    st.lists(st.sampled_from([1, 2, 30, 300, 3000]), min_size=3, max_size=8),
    st.sampled_from([1, 5, 1000, 100_000]),
    st.sampled_from([None, 0, 2, 5]),
    st.integers(0, 10**6),
)
def test_several_at_once(layout: Layout, sizes: list[int], keys: int, bound: int | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = [_run(layout, n, keys, rng) for n in sizes]
    limit = None if bound is None else (layout.column("v").word, bound)
    one = merged(runs, limit)
    other = functools.reduce(lambda a, b: merged([a, b], limit), runs)
    assert _facts(one)[:2] == _facts(other)[:2]
    tops = one.hashes >> np.uint64(64 - one.bits)
    assert (one.directory == np.searchsorted(tops, np.arange((1 << one.bits) + 1, dtype=np.uint64))).all()


def test_weights_that_do_not_fit_are_refused() -> None:
    table = pa.table({"k": [1], "v": [1]}, schema=_WORDS.schema)
    half = Run.of(ZSet.packed(_WORDS, table, 1 << 62))
    with pytest.raises(ConstraintError):
        merged([half, half, half])
