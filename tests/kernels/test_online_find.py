"""Keys of eight bytes have a way of their own through the index: it finds what the other one finds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from headwater.kernels.arrays import read_only
from headwater.kernels.online_find import build_index, find_records, hash_keys

WIDTH, NULLS = 24, 16
SHAPE = np.array([WIDTH, 8, 0, NULLS], np.int64)
SEED = 12345

Numbers = npt.NDArray[np.int64]


def hashes_of(keys: Numbers) -> npt.NDArray[np.uint64]:
    out = np.empty(len(keys), np.uint64)
    hash_keys(read_only(keys.view(np.uint8)), read_only(8 * np.arange(len(keys) + 1)), SEED, out)
    return out


class Layer:
    """Records of keys, those of ``gone`` as deleted."""

    def __init__(self, keys: Numbers, gone: Numbers, entries: int) -> None:
        records = np.zeros((len(keys), WIDTH), np.uint8)
        records[:, :8] = keys.view(np.uint8).reshape(-1, 8)
        records[np.isin(keys, gone), NULLS] = 1
        self.records, self.keys = records, keys
        self.index = np.zeros(entries, np.uint64)
        self.begin = records.ctypes.data
        assert build_index(self.index, self.begin, len(keys), 0, SHAPE, SEED, -1, np.zeros(2, np.int64)) == 0

    @property
    def row(self) -> list[int]:
        return [self.index.ctypes.data, self.index.size, self.begin, len(self.keys), 0, 0]


def found(layers: list[Layer], keys: Numbers, offsets: Numbers | None = None) -> tuple[list[tuple[int, int]], int]:
    """The layer and the number of the record of each key, and how many have none."""
    table = np.array([layer.row for layer in layers], np.int64)
    count = len(keys)
    records, heaps = np.empty(count, np.int64), np.zeros(count, np.int64)
    given = 8 * np.arange(count + 1) if offsets is None else offsets
    missing = find_records(read_only(keys.view(np.uint8)), read_only(given), table, 1, SHAPE, SEED, records, heaps)
    numbers = [
        (h, (r - layers[h].begin) // WIDTH) if r else (-1, -1)
        for r, h in zip(records.tolist(), heaps.tolist(), strict=True)
    ]
    return numbers, missing


def wanted(layers: list[Layer], gone: list[Numbers], keys: Numbers) -> tuple[list[tuple[int, int]], int]:
    """The same by dicts."""
    places: dict[int, tuple[int, int]] = {}
    for h in reversed(range(len(layers))):
        places.update({k: (h, i) for i, k in enumerate(layers[h].keys.tolist())})
        places.update(dict.fromkeys(gone[h].tolist(), (-1, -1)))
    numbers = [places.get(k, (-1, -1)) for k in keys.tolist()]
    return numbers, numbers.count((-1, -1))


@pytest.mark.parametrize("seed", range(6))
def test_each_key_has_the_record_of_its_newest_layer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    most = [20, 300, 3_000][seed % 3]
    held = [np.unique(rng.integers(0, most, rng.integers(1, most))) for _ in range(1 + seed // 2)]
    gone = [rng.choice(keys, len(keys) // 3) for keys in held]
    layers = [Layer(k, g, max(8, int(len(k) / 0.9) + 1)) for k, g in zip(held, gone, strict=True)]
    for count in (0, 1, 7, 1_000):
        keys = rng.integers(0, most + 50, count)
        assert found(layers, keys) == wanted(layers, gone, keys)
        holes = 8 * np.arange(count + 1)
        if count > 1:  # a key of another length is none, and the others are looked up as ever
            holes[-1] -= 4
            assert found(layers, keys, holes)[0][:-1] == wanted(layers, gone, keys)[0][:-1]
            assert found(layers, keys, holes)[0][-1] == (-1, -1)


def test_keys_with_one_fingerprint_and_a_full_index() -> None:
    keys = np.arange(1 << 18)
    prints = hashes_of(keys) & np.uint64(0xFFFFFFFF)
    order = np.argsort(prints, kind="stable")
    same = np.flatnonzero(prints[order][1:] == prints[order][:-1])
    assert len(same) > 3, "among so many keys some have one fingerprint"
    none = np.zeros(0, np.int64)
    for at in same.tolist():
        pair = keys[order[at : at + 2]]
        for there in (pair, pair[::-1].copy()):
            assert found([Layer(there, none, 2)], there) == ([(0, 0), (0, 1)], 0)
        assert found([Layer(pair[:1].copy(), none, 8)], pair) == ([(0, 0), (-1, -1)], 1)
        # The search for a key that is not there ends, even where a damaged index has no end.
        assert found([Layer(pair, none, 2)], np.array([1 << 40, pair[1]])) == ([(-1, -1), (0, 1)], 1)


def test_an_entry_beyond_the_records_is_not_followed() -> None:
    keys = np.arange(100)
    layer = Layer(keys, np.zeros(0, np.int64), 128)
    layer.index[layer.index != 0] |= np.uint64(0x7FFFFF00)
    assert found([layer], keys) == ([(-1, -1)] * 100, 100)
