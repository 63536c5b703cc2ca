"""Addresses against a dictionary, under random changes; and keys, which depend on values and on nothing else."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.incremental.layout import Layout
from headwater.incremental.views.addresses import Addresses, address, copies_of, row_keys
from headwater.incremental.zset import ZSet

LAYOUT = Layout(pa.schema([("n", pa.int64())]))


def keys_of(values: list[int]) -> np.ndarray:
    return row_keys(ZSet.packed(LAYOUT, pa.table({"n": pa.array(values, pa.int64())})))


def test_addresses_are_a_multiset() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        addresses, model, at = Addresses(), dict[int, list[int]](), 0
        file = addresses.number("f")
        for _ in range(40):
            values = rng.sample(range(12), rng.randint(1, 6))
            gone = [v for v in values if model.get(v) and rng.random() < 0.6]
            come = [v for v in values if v not in gone]
            out = np.array([rng.randint(1, len(model[v])) for v in gone], dtype=np.int64)
            into = np.array([rng.randint(1, 4) for _ in come], dtype=np.int64)
            gone_keys, come_keys = keys_of(gone), keys_of(come)
            leaving, places = addresses.leaving(gone_keys, out, "here")
            coming = addresses.coming(come_keys, into)
            new = address(file, np.arange(at, at + len(coming.keys)))
            at += len(new)
            for which, place in zip(leaving.which, places, strict=True):
                model[gone[which]].remove(int(place))
            for which, place in zip(coming.which, new, strict=True):
                model.setdefault(come[which], []).append(int(place))
            addresses.change([(leaving.keys, places)], [(coming.keys, new)])
            addresses.count(np.concatenate([gone_keys, come_keys]), np.concatenate([leaving.more, coming.more]))
        for value, expected in model.items():
            key = keys_of([value])
            found = addresses.find(copies_of(np.repeat(key, len(expected) + 2, axis=0), np.arange(len(expected) + 2)))
            assert sorted(found[: len(expected)].tolist()) == sorted(expected)
            assert found[len(expected) :].tolist() == [-1, -1]


def test_building_and_adding_are_the_same() -> None:
    values = [1, 2, 2, 3, 3, 3]
    built = Addresses()
    file = built.number("f")
    built.build(keys_of(values), address(file, np.arange(6)))
    taken, places = built.leaving(keys_of([3, 2, 1]), np.array([3, 1, 1]), "here")
    assert len(set(places.tolist())) == 5 and built.beyond(keys_of([1, 2, 3])).tolist() == [0, 1, 2]
    assert taken.more.tolist() == [-2, -1, 0]
    assert {path: at.tolist() for path, at in built.by_file(places).items()}["f"] == sorted(
        int(p) & ((1 << 36) - 1) for p in places
    )


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-3, 3)),
        st.one_of(st.none(), st.text(max_size=30)),
        st.one_of(st.none(), st.binary(max_size=20)),
        st.one_of(st.none(), st.lists(st.text(max_size=3), max_size=2)),
    ),
    min_size=1,
    max_size=20,
)
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.binary()), ("d", pa.list_(pa.string()))])


@given(ROWS)
def test_keys_are_equal_iff_rows_are(rows: list[tuple[object, ...]]) -> None:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    keys = [tuple(k) for k in row_keys(ZSet.packed(Layout(SCHEMA), table)).tolist()]
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (keys[i] == keys[j]) == (repr(one) == repr(other))
            assert (keys[i][0] == keys[j][0]) == (keys[i][1] == keys[j][1]), "two hashes, and not one"


def test_keys_do_not_depend_on_what_may_be_null() -> None:
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string(), nullable=False)])
    loose = pa.schema([("a", pa.int64()), ("b", pa.string())])
    columns = {"a": [1, 2], "b": ["x", "a text that is longer than a slot"]}
    one = row_keys(ZSet.packed(Layout(strict), pa.table(columns, schema=strict)))
    other = row_keys(ZSet.packed(Layout(loose), pa.table(columns, schema=loose)))
    assert (one == other).all()
    assert one.tolist() == row_keys(ZSet.packed(Layout(loose), pa.table(columns, schema=loose))).tolist()
