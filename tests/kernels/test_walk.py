"""The first rows alive of a key, from a start, through many runs: against sorting in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.incremental.layout import Layout, Order
from headwater.incremental.run import Run, addresses
from headwater.incremental.zset import ZSet
from headwater.kernels.walk import live

_LAYOUT = Layout(pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())]), keys=1, order=[Order("v")])
_POOL = [None, "", "a", "ab", "b" * 12, "b" * 13, "b" * 14]


def _zset(rows: list[tuple[int, str | None]], weights: list[int] | int = 1, *, hashes: int | None = None) -> ZSet:
    table = pa.table(
        {"k": pa.array([r[0] for r in rows], pa.int64()), "v": pa.array([r[1] for r in rows], pa.string())},
        schema=_LAYOUT.schema,
    )
    zset = ZSet.packed(_LAYOUT, table, np.array(weights, dtype=np.int64))
    if hashes is not None:
        zset._hashes = zset.hashes % np.uint64(hashes)
    return zset


_ROW = st.tuples(st.integers(0, 2), st.sampled_from(_POOL))


@given(
    st.lists(st.lists(st.tuples(_ROW, st.integers(-2, 2)), max_size=12), max_size=4),
    st.lists(st.tuples(_ROW, st.booleans()), max_size=4),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_live(
    history: list[list[tuple[tuple[int, str | None], int]]],
    asked: list[tuple[tuple[int, str | None], bool]],
    most: int,
    backwards: bool,
    since_last: bool,
    hashes: int | None,
) -> None:
    runs = [Run.of(_zset([r for r, _ in part], [w for _, w in part], hashes=hashes)) for part in history]
    runs = [run for run in runs if len(run)]
    total: Counter[Any] = Counter()
    for part in history:
        for row, weight in part:
            total[row] += weight
    starts = _zset([row for row, _ in asked], hashes=hashes)
    started = np.array([given for _, given in asked], dtype=np.bool_)
    which = np.empty(most * len(asked), dtype=np.int64)
    out = np.empty((most * len(asked), _LAYOUT.width), dtype=np.int64)
    since_last = since_last and bool(runs)
    parts = np.concatenate([_LAYOUT.key_parts, _LAYOUT.order_parts])
    count = live(
        addresses(runs)[:-1], _LAYOUT.width, starts.hashes, starts.rows, started, since_last, parts,
        _LAYOUT.key_parts, _LAYOUT.sort_parts, _LAYOUT.slots, most, backwards, which, out,
    )  # fmt: skip
    found = ZSet(_LAYOUT, out[:count], tuple(runs)).to_arrow().to_pylist()
    got = [(int(i), r["k"], r["v"], r["_weight"]) for i, r in zip(which[:count], found, strict=True)]
    rank = {v: i for i, v in enumerate(sorted(_POOL, key=lambda v: (v is not None, v or "")))}
    expected = []
    last = [(r["k"], r["v"]) for r in runs[-1].zset().to_arrow().to_pylist()] if since_last else []
    for i, ((key, start), given_start) in enumerate(asked):
        sign = -1 if backwards else 1
        begins = [start] if given_start else []
        begins += [v for k, v in last if k == key]
        if since_last and not begins:
            continue
        first = min((sign * rank[v] for v in begins), default=-(10**6)) if (given_start or since_last) else -(10**6)
        alive = sorted(
            (sign * rank[v], v, n) for (k, v), n in total.items() if k == key and n > 0 and sign * rank[v] >= first
        )
        expected += [(i, key, v, n) for _, v, n in alive[:most]]
    assert got == expected
