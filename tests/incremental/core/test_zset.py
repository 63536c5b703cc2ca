"""Z-sets: a commutative group with one canonical form, on which linear and bilinear operators act as they should."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.incremental.core.columns import counted, layouts, zsets

from headwater.base.errors import ConstraintError
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout, Order
from headwater.incremental.operators.join import Lookup
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels.consolidate import is_consolidated


def _plus(*parts: Counter[Any]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for part in parts:
        for row, weight in part.items():
            total[row] += weight
    return Counter({row: n for row, n in total.items() if n})


@st.composite
def several(draw: st.DrawFn, number: int) -> tuple[ZSet, ...]:
    layout = draw(layouts())
    return tuple(draw(zsets(layout)) for _ in range(number))


def _same(a: ZSet, b: ZSet) -> bool:
    """The same words in the same order, but for where long strings lie."""
    x, y = a.consolidate(), b.consolidate()
    if len(a.layout.slots):
        return bool(x.to_arrow().equals(y.to_arrow())) and x.hashes.tolist() == y.hashes.tolist()
    return bool(x.rows.tolist() == y.rows.tolist()) and x.hashes.tolist() == y.hashes.tolist()


@given(several(3))
def test_a_commutative_group(parts: tuple[ZSet, ...]) -> None:
    a, b, c = parts
    zero = ZSet.empty(a.layout)
    assert counted(a + b) == _plus(counted(a), counted(b))
    assert _same(a + b, b + a)
    assert _same((a + b) + c, a + (b + c))
    assert _same(a + zero, a)
    assert len((a - a).consolidate()) == 0
    negative = -a
    assert _same(-negative, a)
    assert _same(a - b, a + -b)
    assert _same(concatenate([a, b, c], a.layout), a + b + c)


@given(several(1), st.randoms(use_true_random=False))
def test_any_listing_has_the_same_canonical_form(parts: tuple[ZSet, ...], random: object) -> None:
    (a,) = parts
    listing = list(range(len(a)))
    random.shuffle(listing)  # type: ignore[attr-defined]
    shuffled = ZSet(a.layout, a.rows[listing], a.owners)
    split = concatenate([shuffled, a, -shuffled], a.layout)
    assert _same(a, shuffled)
    assert _same(a, split)
    z = a.consolidate()
    assert is_consolidated(z.hashes, z.rows, 0, z.layout.sort_parts, z.layout.payload)
    assert z.consolidate() is z
    assert counted(z) == counted(a)
    assert len(z) == len(counted(a))


@given(several(2), st.data())
def test_arrangements_and_filters_are_linear(parts: tuple[ZSet, ...], data: st.DataObject) -> None:
    a, b = parts
    names = data.draw(st.permutations(a.layout.names))
    keys = data.draw(st.integers(0, len(names)))
    order = [Order(n, data.draw(st.booleans()), data.draw(st.booleans())) for n in names[keys:]]
    arranged = Arrangement(a.layout, names, keys=keys, order=order)
    assert _same(arranged.apply(a + b), arranged.apply(a) + arranged.apply(b))
    at = [a.layout.names.index(n) for n in names]
    assert counted(arranged.apply(a)) == _plus(
        *(Counter({tuple(row[i] for i in at): weight}) for row, weight in counted(a).items())
    )

    def chosen(z: ZSet) -> ZSet:
        return z.filtered(np.flatnonzero(z.hashes & np.uint64(1)))

    assert _same(chosen(a + b), chosen(a) + chosen(b))


_FACT = Layout(pa.schema([("k", pa.int8()), ("v", pa.string())]), keys=1)
_DIMENSION = Layout(pa.schema([("k", pa.int8()), ("g", pa.int64())]), keys=1)
_PAIRS = Layout(pa.schema([("v", pa.string()), ("g", pa.int64())]))
_LOOKUP = Lookup(_FACT, _DIMENSION, _PAIRS, [(1, 0)], [(1, 1)])
_BACK = Lookup(_DIMENSION, _FACT, _PAIRS, [(1, 1)], [(1, 0)])


@st.composite
def _small(draw: st.DrawFn, layout: Layout) -> ZSet:
    n = draw(st.integers(0, 8))
    keys = draw(st.lists(st.sampled_from([1, 2, 3, None]), min_size=n, max_size=n))
    pool = ["", "x" * 13, "y" * 500, None] if layout is _FACT else [1, 2, None]
    others = draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    weights = draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))
    table = pa.Table.from_arrays(
        [pa.array(keys, pa.int8()), pa.array(others, layout.schema.types[1])], schema=layout.schema
    )
    return ZSet.packed(layout, table, np.array(weights, dtype=np.int64))


def _traced(z: ZSet) -> Trace:
    trace = Trace(z.layout)
    half = len(z) // 2
    trace.add(z.filtered(np.arange(half)))
    trace.add(z.filtered(np.arange(half, len(z))))
    return trace


def _joined(a: ZSet, b: ZSet) -> Counter[Any]:
    """All pairs of equal keys, a null being equal to a null (a Join leaves those out before it looks up)."""
    found: list[Counter[Any]] = []
    for (k, v), x in counted(a).items():
        found += [Counter({(v, g): x * y}) for (key, g), y in counted(b).items() if key == k]
    return _plus(*found)


@given(_small(_FACT), _small(_FACT), _small(_DIMENSION), _small(_DIMENSION))
def test_joins_are_bilinear(a: ZSet, b: ZSet, c: ZSet, d: ZSet) -> None:
    def join(x: ZSet, y: ZSet) -> Counter[Any]:
        found = counted(_LOOKUP.run(x, _traced(y), staged=False))
        assert found == counted(_BACK.run(y, _traced(x), staged=False)) == _joined(x, y)
        return found

    assert join(a + b, c) == _plus(join(a, c), join(b, c))
    assert join(a, c + d) == _plus(join(a, c), join(a, d))
    assert join(-a, c) == join(a, -c)


@given(st.lists(st.tuples(_small(_FACT), _small(_DIMENSION)), max_size=5))
def test_differences_and_sums_are_inverse_and_the_product_rule_holds(history: list[tuple[ZSet, ZSet]]) -> None:
    left, right = Trace(_FACT), Trace(_DIMENSION)
    total = ZSet.empty(_PAIRS)
    before: Counter[Any] = Counter()
    for a, b in history:
        staged = left.stage(a), right.stage(b)
        total = total + _LOOKUP.run(a, right, staged=True) + _BACK.run(b, left, staged=False)
        left.commit()
        right.commit()
        after = counted(left.zset())
        assert _plus(after, Counter({r: -n for r, n in before.items()})) == counted(a)  # D(I(s)) = s
        before = after
        assert counted(total) == _joined(left.zset(), right.zset())
        del staged
    summed = concatenate([a for a, _ in history], _FACT)
    assert counted(summed) == before  # I(D(s)) = s


@given(st.lists(_small(_FACT), max_size=5))
def test_the_chain_rule(history: list[ZSet]) -> None:
    """The change of a composition is the composition of the changes: project, then join with a fixed side, then filter."""
    fixed = _traced(ZSet.packed(_DIMENSION, pa.table({"k": [1, 2, 2], "g": [1, 1, 2]}, schema=_DIMENSION.schema)))

    def composed(z: ZSet) -> ZSet:
        out = _LOOKUP.run(z, fixed, staged=False)
        return out.filtered(np.flatnonzero(out.rows[:, _PAIRS.columns[1].word] == 1))

    whole = ZSet.empty(_FACT)
    total: Counter[Any] = Counter()
    for delta in history:
        whole = whole + delta
        total = _plus(total, counted(composed(delta)))
        assert total == counted(composed(whole))


def test_a_weight_that_does_not_fit_is_an_error() -> None:
    most = np.iinfo(np.int64).max
    a = ZSet.from_arrow(pa.table({"x": [1, 1]}), weights=np.array([most, 1]))
    with pytest.raises(ConstraintError):
        a.consolidate()
    with pytest.raises(ConstraintError):
        -ZSet.from_arrow(pa.table({"x": [1]}), weights=-most - 1)
    near = ZSet.from_arrow(pa.table({"x": [1, 1]}), weights=np.array([most - 1, 1]))
    assert near.consolidate().weights.tolist() == [most]


def test_a_product_of_weights_that_does_not_fit_is_an_error() -> None:
    a = ZSet.packed(_FACT, pa.table({"k": [1], "v": ["a"]}, schema=_FACT.schema), 1 << 40)
    b = ZSet.packed(_DIMENSION, pa.table({"k": [1], "g": [1]}, schema=_DIMENSION.schema), 1 << 40)
    with pytest.raises(ConstraintError):
        _LOOKUP.run(a, _traced(b), staged=False)
