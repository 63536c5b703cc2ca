"""What rows, columns, changes, builds and workers cost: bytes and seeds, which are the same on every machine."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from tests.serving.server.publishing import publish, store_at
from tests.serving.server.running import serving
from tests.serving.tables import version_of
from tests.waiting import wait_until

import headwater as hw
from headwater.kernels.arrays import read_only
from headwater.kernels.online_find import hash_keys
from headwater.serving.building import Shape, build_layer, layout_of, stored_schema

REDIS_BYTES = 132
"""What Redis 7 takes for a row: a key of 12 bytes and a blob of ten float32, by MSET; `benchmarks/serving.py`."""
FLOATS = [f"c{n}" for n in range(10)]


def floats(rows: int, begin: int = 0) -> pa.Table:
    columns = {name: pa.array(np.full(rows, 0.5, np.float32)) for name in FLOATS}
    return pa.table({"key": [f"item_{begin + n:07d}" for n in range(rows)], **columns})


@pytest.mark.long
def test_a_row_takes_less_than_seven_tenths_of_a_blob_in_redis(tmp_path: Path) -> None:
    rows = 50_000
    version = version_of(floats(rows), ["key"], tmp_path)
    assert version.bytes / rows < 0.7 * REDIS_BYTES


def test_columns_that_are_almost_always_null_cost_next_to_nothing(tmp_path: Path) -> None:
    rows = 20_000
    plain = floats(rows)
    wide = plain
    for number in range(50):
        values: list[float | None] = [None] * rows
        values[number] = 1.5
        wide = wide.append_column(f"rare{number}", pa.array(values, pa.float64()))
    more = version_of(wide, ["key"], tmp_path).bytes - version_of(plain, ["key"], tmp_path).bytes
    assert more / rows < 16, "50 columns of eight bytes"


@pytest.mark.long
def test_each_version_has_a_seed_of_its_own_and_keys_cannot_be_chosen_to_collide(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", floats(100))
    online = lake.online("o", "t", key="key", refresh=True)
    seeds = [online.current.mapped.seed]
    for _ in range(3):
        online.refresh(full=True)
        seeds.append(online.current.mapped.seed)
    assert len(set(seeds)) == len(seeds)
    codec = online.current.mapped.codec

    def slots(keys: list[str], seed: int) -> np.ndarray:
        batch = codec.keys(keys)
        hashes = np.empty(len(keys), np.uint64)
        hash_keys(read_only(batch.data), read_only(batch.offsets), seed - (1 << 64) if seed >> 63 else seed, hashes)
        return hashes >> np.uint64(57)

    keys = [f"guess {n}" for n in range(100_000)]
    chosen = [key for key, slot in zip(keys, slots(keys, seeds[0]).tolist(), strict=True) if slot == 5]
    assert len(chosen) > 500, "by the one seed all of them go to the same hundredth of the index"
    shares = np.bincount(slots(chosen, seeds[1]).astype(np.int64), minlength=128) / len(chosen)
    assert shares.max() < 0.05, "and by the next one anywhere"


@pytest.mark.long
def test_building_takes_as_much_memory_as_its_index(tmp_path: Path) -> None:
    schema = stored_schema(floats(1).schema, ["key"])
    batch_rows = 10_000

    def peak(batches: int) -> int:
        made = [floats(batch_rows, number * batch_rows).to_batches()[0] for number in range(batches)]
        layout = layout_of(schema, ["key"], floats(batch_rows).to_batches(), ordered=False)
        pool = pa.default_memory_pool()
        tracemalloc.start()
        before = pool.bytes_allocated()
        most = [0]
        build_layer(
            made,
            Shape(layout, 1),
            lambda part: str(tmp_path / f"{batches}-{part}.records"),
            advance=lambda _: most.append(pool.bytes_allocated() - before),
        )
        _, numpys = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return numpys + max(most)

    peak(1)
    few, many = peak(5), peak(45)
    more = (many - few) / (40 * batch_rows)
    assert more < 24, f"{more:.0f} bytes a row, of 80 in the file and 16 in the index"


def test_a_change_of_few_rows_writes_few_bytes(tmp_path: Path) -> None:
    rows = 100_000
    lake = hw.connect(tmp_path)
    table = lake.write("t", floats(rows))
    online = lake.online("o", "t", key="key", refresh=True)
    base = online.record.layers[-1].bytes
    table.update({"c0": "0.25"}, where="key < 'item_0000100'")
    report = online.refresh()
    assert report.mode == "incremental" and report.rows_out == 100
    (overlay,) = online.record.layers[:-1]
    assert overlay.rows == 100 and overlay.bytes < base / 200
    assert online.record.layers[-1].bytes == base


@pytest.mark.long
def test_a_version_is_opened_in_milliseconds(tmp_path: Path) -> None:
    store = store_at(tmp_path, "t")
    publish(store, floats(500_000), ["key"])
    times = []
    for _ in range(7):
        began = time.perf_counter()
        following = store_at(tmp_path, "t").follow()
        assert following.advance() and following.current is not None
        times.append(time.perf_counter() - began)
    assert min(times) < 0.02, times


@pytest.mark.long
def test_workers_share_one_copy(tmp_path: Path) -> None:
    rows = 300_000
    store = store_at(tmp_path, "t")
    publish(store, floats(rows), ["key"])
    following = store.follow()
    assert following.advance() and following.current is not None
    size = following.current.bytes
    assert size > 20 << 20
    with serving(tmp_path, workers=2) as server:

        def mapped(kind: str) -> list[int]:
            maps = [psutil.Process(pid).memory_maps() for pid in server.children()]
            return [sum(getattr(one, kind) for one in of if one.path.endswith(".records")) for of in maps]

        keys = [f"item_{n:07d}" for n in range(0, rows, 20)]

        def all_have_it() -> bool:
            with hw.Client(server.url) as client:  # a connection of its own, for any of the workers
                assert client.fetch("t", keys, ["c0"]).found.all()
            return sum(rss > size / 2 for rss in mapped("rss")) == 2

        wait_until(all_have_it, "every worker has touched the table")
        assert sum(mapped("rss")) > 1.5 * size
        assert sum(mapped("pss")) <= size * 1.01, "what they share is there once"
        assert sum(mapped("private_dirty")) == 0
