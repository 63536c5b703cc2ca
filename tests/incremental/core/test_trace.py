"""Traces against a Counter of plain Python: any batching, any keys, with and without what is staged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.incremental.core.columns import counted, layouts, rows_of, zsets

from headwater.base.errors import ConstraintError
from headwater.incremental import trace as trace_module
from headwater.incremental.layout import Layout, Order
from headwater.incremental.run import merged
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels.consolidate import is_consolidated

_I64 = pa.int64()
_KV = Layout(pa.schema([pa.field("k", _I64, False), pa.field("v", _I64, False)]), keys=1)
_TEXT = Layout(pa.schema([("a", pa.string()), ("b", pa.string()), ("n", _I64)]), keys=2, order=[Order("n", True)])


@pytest.fixture(autouse=True, scope="module")
def _small_levels() -> Iterator[None]:
    """Levels of a few rows, so that small histories go through all of them and the spine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_module, "_LEVELS", (2, 5, 11))
        yield


@st.composite
def histories(draw: st.DrawFn) -> tuple[Layout, list[ZSet]]:
    layout = draw(layouts())
    return layout, draw(st.lists(zsets(layout), max_size=8))


def _check_runs(trace: Trace) -> None:
    for run in trace.runs:
        assert is_consolidated(run.hashes, run.rows, int(run.line[2]), run.layout.sort_parts, run.layout.payload)
        tops = run.hashes >> np.uint64(64 - run.bits)
        assert (run.directory == np.searchsorted(tops, np.arange((1 << run.bits) + 1, dtype=np.uint64))).all()


def _keyed(layout: Layout, rows: Counter[Any]) -> dict[Any, Counter[Any]]:
    found: dict[Any, Counter[Any]] = {}
    for row, weight in rows.items():
        found.setdefault(row[: layout.keys], Counter())[row] += weight
    return found


def _check_finds(trace: Trace, keys: ZSet, expected: Counter[Any], *, staged: bool) -> None:
    layout = trace.layout
    by_key = _keyed(layout, expected)
    asked = [row[: layout.keys] for row in _rows(keys)]
    matches = trace.find(keys, staged=staged)
    found: dict[int, Counter[Any]] = {i: Counter() for i in range(len(keys))}
    for i, row, weight in zip(matches.which.tolist(), _rows(matches.rows), matches.rows.weights.tolist(), strict=True):
        found[i][row] += weight
    sums = trace.weights(keys, staged=staged)
    for i, key in enumerate(asked):
        there = by_key.get(key, Counter())
        assert {row: n for row, n in found[i].items() if n} == there
        assert sums[i].tolist() == [there.total()]


def _rows(zset: ZSet) -> list[Any]:
    return list(rows_of(zset.to_arrow()))


@given(histories())
def test_a_trace_is_the_sum_of_what_was_added(history: tuple[Layout, list[ZSet]]) -> None:
    layout, deltas = history
    trace = Trace(layout)
    total: Counter[Any] = Counter()
    for i, delta in enumerate(deltas):
        trace.stage(delta)
        _check_finds(trace, delta, Counter({r: n for r, n in total.items() if n}), staged=False)
        before = counted(trace.zset())
        if i % 3 == 2:
            trace.rollback()
            assert counted(trace.zset()) == before
            continue
        for row, weight in counted(delta).items():
            total[row] += weight
        total = Counter({r: n for r, n in total.items() if n})
        _check_finds(trace, delta, total, staged=True)
        trace.commit()
        assert counted(trace.zset()) == total
        _check_finds(trace, delta, total, staged=False)
        _check_runs(trace)
    trace.spine.settle()
    assert counted(trace.zset()) == total
    assert len(trace.zset()) == len(total) <= len(trace)
    assert len(trace.spine.runs) <= 24


@given(histories())
def test_snapshots_and_forks_are_independent(history: tuple[Layout, list[ZSet]]) -> None:
    layout, deltas = history
    half = len(deltas) // 2
    trace = Trace(layout)
    for delta in deltas[:half]:
        trace.add(delta)
    snapshot, fork = trace.snapshot(), trace.fork()
    then = counted(trace.zset())
    for delta in deltas[half:]:
        trace.add(delta)
        fork.add(-delta)
    whole = counted(concatenate(deltas, layout))
    assert counted(trace.zset()) == whole
    assert counted(concatenate([run.zset() for run in snapshot], layout)) == then
    other = concatenate([*deltas[:half], *(-d for d in deltas[half:])], layout)
    assert counted(fork.zset()) == counted(other)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(-2, 2)), max_size=9), max_size=9),
    st.data(),
)
def test_forgetting_drops_only_what_is_below_the_bound(
    history: list[list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    trace = Trace(_KV)
    bound = -10
    word = _KV.column("v").word
    every: Counter[Any] = Counter()
    for rows in history:
        bound = data.draw(st.integers(bound, 10))
        trace.forget((word, bound))
        delta = _packed([r[:2] for r in rows], [r[2] for r in rows])
        trace.add(delta)
        for row, weight in counted(delta).items():
            every[row] += weight
        kept = counted(trace.zset())
        assert {r: n for r, n in kept.items() if r[1] >= bound} == {
            r: n for r, n in every.items() if n and r[1] >= bound
        }
    whole = Trace(_KV)
    whole.forget((word, bound))
    for rows in history:
        whole.add(_packed([r[:2] for r in rows], [r[2] for r in rows]))
    runs = whole.runs
    if len(runs) > 1:
        one = runs[0]
        for other in runs[1:]:
            one = merged([one, other], (word, bound))
        assert all(row[1] >= bound for row in counted(one.zset()))


def _packed(rows: list[tuple[int, int]], weights: list[int] | int = 1) -> ZSet:
    table = pa.table(
        {"k": pa.array([r[0] for r in rows], _I64), "v": pa.array([r[1] for r in rows], _I64)}, schema=_KV.schema
    )
    return ZSet.packed(_KV, table, np.array(weights, dtype=np.int64) if isinstance(weights, list) else weights)


# -- weights that do not fit ---------------------------------------------------------------------------------------------


def test_an_overflow_is_an_error_of_the_step_and_changes_nothing() -> None:
    most = np.iinfo(np.int64).max
    trace = Trace(_KV)
    trace.add(_packed([(1, 1), (2, 2)], [most - 5, 1]))
    trace.add(_packed([(1, 1)], [5]))
    with pytest.raises(ConstraintError):
        trace.stage(_packed([(1, 1), (3, 3)], [1, 1]))
    trace.commit()
    assert counted(trace.zset()) == {(1, 1): most, (2, 2): 1}
    trace.add(_packed([(1, 1)], [-7]))
    trace.add(_packed([(1, 1)], [7]))
    for k in range(40):
        trace.add(_packed([(k + 10, 1)], [most // 2]))  # large weights of different rows are no overflow
    trace.spine.settle()
    assert trace.spine.failure is None
    found = counted(trace.zset())
    assert (found[1, 1], found[15, 1], len(found)) == (most, most // 2, 42)
    with pytest.raises(ConstraintError):
        trace.stage(_packed([(15, 1)], [most // 2 + 2]))
    assert counted(trace.zset()) == found


# -- collisions ----------------------------------------------------------------------------------------------------------


def _colliding(layout: Layout, table: pa.Table, weights: Any = 1, *, hashes: int = 1) -> ZSet:
    """Rows whose keys have one of a few hashes only."""
    zset = ZSet.packed(layout, table, weights)
    zset._hashes = zset.hashes % np.uint64(hashes)
    return zset


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(["", "a", "x" * 13, "x" * 14, None]),
                st.sampled_from(["b", None]),
                st.integers(0, 3),
                st.integers(-2, 2),
            ),
            max_size=10,
        ),
        max_size=8,
    ),
    st.sampled_from([1, 2]),
)
def test_keys_that_collide_are_told_apart(history: list[list[Any]], hashes: int) -> None:
    trace = Trace(_TEXT)
    total: Counter[Any] = Counter()
    for rows in history:
        columns = {name: pa.array([r[i] for r in rows], _TEXT.schema.field(name).type) for i, name in enumerate("abn")}
        delta = _colliding(
            _TEXT, pa.table(columns, schema=_TEXT.schema), np.array([r[3] for r in rows], dtype=np.int64), hashes=hashes
        )
        trace.add(delta)
        for row, weight in counted(delta).items():
            total[row] += weight
        total = Counter({r: n for r, n in total.items() if n})
        assert counted(trace.zset()) == total
        _check_finds(trace, delta, total, staged=False)
        _check_runs(trace)


def test_a_trace_is_compacted_into_one_run_without_what_has_gone() -> None:
    layout = Layout(pa.schema([("k", pa.int64()), ("s", pa.string())]), keys=1)
    trace = Trace(layout)
    table = pa.table({"k": range(9_000), "s": [f"a string of some length {i}" for i in range(9_000)]}, layout.schema)
    for start, sign in ((0, 1), (3_000, 1), (6_000, 1), (0, -1), (8_000, -1)):
        part = table.slice(start, 1_000 if sign < 0 else 3_000)
        trace.add(ZSet.packed(layout, part, np.full(part.num_rows, sign)))
    before = trace.zset().to_arrow()
    assert trace.compact()
    assert [len(run) for run in trace.runs] == [7_000]
    assert trace.zset().to_arrow().equals(before)
    assert not trace.compact()
    trace.add(ZSet.packed(layout, table.slice(1_000, 7_000), np.full(7_000, -1)))
    trace.compact()
    assert not trace.runs, "nothing is left"
