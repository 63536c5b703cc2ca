"""Narrow run files: runs of up to a million rows come back as they were, and what is damaged in them is found."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import CorruptionError
from headwater.incremental import run_narrow
from headwater.incremental.layout import Layout
from headwater.incremental.run import Run, merged
from headwater.incremental.run_file import RunFile, write_narrow, write_run
from headwater.incremental.run_narrow import compressed, decompressed, narrowed, shortest, widened
from headwater.incremental.spill import spilled
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

FIELDS = [
    ("id", pa.int64()),
    ("small", pa.int32()),
    ("price", pa.float64()),
    ("day", pa.date32()),
    ("same", pa.int64()),
]
LAYOUT = Layout(pa.schema(FIELDS), keys=2)
WORDS = st.integers(-(1 << 63), (1 << 63) - 1)


def some_run(rows: int, seed: int = 1) -> Run:
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "id": pa.array(random.integers(-(1 << 62), 1 << 62, rows), mask=random.random(rows) < 0.1),
            "small": pa.array(random.integers(0, 900, rows), pa.int32()),
            "price": random.standard_normal(rows),
            "day": pa.array(random.integers(0, 365, rows), pa.int32()).cast(pa.date32()),
            "same": np.full(rows, 7),
        },
        schema=LAYOUT.schema,
    )
    return Run.of(ZSet.packed(LAYOUT, table, random.choice([-2, -1, 1, 3], rows)))


def write(run: Run, path: Path) -> RunFile:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        write_narrow(run, fd)
    finally:
        os.close(fd)
    return RunFile.read(str(path))


def assert_same(back: Run, run: Run) -> None:
    assert np.array_equal(back.rows, run.rows) and np.array_equal(back.hashes, run.hashes)
    assert np.array_equal(back.directory, run.directory) and back.bits == run.bits
    assert back.line[4:].tolist() == run.line[4:].tolist()


@given(st.integers(1, 5).flatmap(lambda w: st.lists(st.lists(WORDS, min_size=w, max_size=w), min_size=1, max_size=20)))
def test_any_rows_come_back(rows: list[list[int]]) -> None:
    given_rows = np.array(rows, dtype=np.int64)
    back = widened(narrowed(given_rows), len(rows), len(rows[0]))
    assert back is not None and np.array_equal(back, given_rows)


@pytest.mark.parametrize(
    "spread", [0, 1, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 48, (1 << 63) - 1]
)
@pytest.mark.parametrize("least", [-(1 << 63), -1, 0, 5])
def test_a_distance_takes_as_many_bytes_as_it_needs(spread: int, least: int) -> None:
    top = least + spread
    if top >= 1 << 63:
        return
    data = narrowed(np.array([[least], [top]], dtype=np.int64))
    width = next(w for w in range(9) if spread < 1 << 8 * w)
    assert len(data) == shortest(1) + 2 * width
    back = widened(data, 2, 1)
    assert back is not None
    assert back.tolist() == [[least], [top]]


@pytest.mark.parametrize("rows", [255, 256, 5_000, 250_000])
def test_a_run_comes_back(rows: int, tmp_path: Path) -> None:
    run = some_run(rows)
    file = write(run, tmp_path / "a.run")
    assert file.header.version == (3 if len(run) >= 256 else 1)
    assert (tmp_path / "a.run").stat().st_size == file.header.length
    file.verify()
    back = file.open(LAYOUT)
    assert_same(back, run)
    assert back.file is file and not back.mapped
    assert back.most == file.header.most == run.weight_bound()
    if file.header.version == 3:
        assert file.header.length < run.nbytes / 2


def test_strings_come_back_and_take_less(tmp_path: Path) -> None:
    """Short ones, long ones, nulls, and two columns of them: in the key, and beside it."""
    layout = Layout(pa.schema([("name", pa.string()), ("n", pa.int64()), ("more", pa.string())]), keys=1)
    names = [None if i % 11 == 0 else f"{'a name of some length ' * (i % 3)}{i % 40}" for i in range(3_000)]
    table = pa.table({"name": names, "n": range(3_000), "more": ["x" * (i % 30) for i in range(3_000)]})
    run = Run.of(ZSet.packed(layout, table.cast(layout.schema)))
    file = write(run, tmp_path / "a.run")
    assert file.header.version == 3 and file.header.length < run.nbytes / 3
    back = file.open(layout)
    assert_same(back, run)
    assert back.heap.tobytes() == run.heap.tobytes()
    assert back.zset().to_arrow().equals(run.zset().to_arrow())
    twice = merged([back, back]).zset()
    assert np.array_equal(twice.weights, 2 * run.zset().weights) and twice.schema == layout.schema


def test_large_runs_are_stored_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_narrow, "_MOST", 5_000)
    assert write(some_run(6_000), tmp_path / "b.run").header.version == 1


def test_a_file_of_version_2_is_read(tmp_path: Path) -> None:
    """It has widths that are powers of two, and no heap."""
    path = tmp_path / "a.run"
    layout = Layout(pa.schema([("id", pa.int64())]), keys=1)
    run = Run.of(ZSet.packed(layout, pa.table({"id": range(300)}, schema=layout.schema)))
    size = write(run, path).header.size
    old = bytearray(path.read_bytes())
    struct.pack_into("<I", old, 8, 2)
    struct.pack_into("<I", old, size - 4, zlib.crc32(memoryview(old)[: size - 4]))
    path.write_bytes(old)
    assert RunFile.read(str(path)).header.version == 2
    assert_same(RunFile.read(str(path)).open(layout), run)


def test_a_heap_that_cannot_be_read_is_found() -> None:
    good = compressed(np.frombuffer(b"a string that is long" * 20, dtype=np.uint8))
    assert decompressed(good) is not None
    for bad in (b"", good[:5], good[:-4], good[:8] + b"no zstandard", struct.pack("<Q", 1 << 60) + good[8:]):
        assert decompressed(bad) is None


def test_a_flipped_bit_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write(some_run(300), path)
    good = path.read_bytes()
    random = np.random.default_rng(3)
    for at in [0, 8, 44, len(good) - 1, *random.integers(0, len(good), 60)]:
        bad = bytearray(good)
        bad[at] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(bad)
        with pytest.raises(CorruptionError) as caught:
            RunFile.read(str(path)).open(LAYOUT)
        assert caught.value.code in {"E5008", "E5010"}


@pytest.mark.parametrize("what", ["width", "length", "section"])
def test_rows_that_do_not_fit_are_found_though_checksums_are_right(what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    header = write(some_run(300), path).header
    bad = bytearray(path.read_bytes())
    first = header.sections[0]
    if what == "width":
        struct.pack_into("<q", bad, first.offset + 8, 9)
    elif what == "length":
        struct.pack_into("<q", bad, first.offset + 8, 2)  # flags of nulls take one byte
    else:
        struct.pack_into("<Q", bad, 96 + 24 + 8, 64)  # the section of hashes
    checksum = zlib.crc32(memoryview(bad)[first.offset :])
    struct.pack_into("<I", bad, 96 + 16, checksum)
    struct.pack_into("<I", bad, header.size - 4, zlib.crc32(memoryview(bad)[: header.size - 4]))
    path.write_bytes(bad)
    with pytest.raises(CorruptionError, match="do not fit"):
        RunFile.read(str(path)).open(LAYOUT)


def test_a_checkpoint_of_narrow_runs_is_restored_and_goes_on(tmp_path: Path) -> None:
    trace, expected = Trace(LAYOUT), ZSet.empty(LAYOUT)
    for seed in range(6):
        change = some_run(2_000, seed).zset()
        trace.add(change)
        expected = expected + change
        with Store(tmp_path) as store:
            store.checkpoint(seed, {"t": trace})
            trace = store.trace(store.restore(), "t", LAYOUT)
            store.verify(store.restore())
    expected = expected.consolidate()
    assert np.array_equal(trace.zset().rows, expected.rows)


def test_a_narrow_run_that_is_spilled_is_mapped(tmp_path: Path) -> None:
    run = some_run(20_000)
    with Store(tmp_path) as store:
        store._runs.keep([run])
        assert run.file is not None and run.file.header.version == 3
        mapped = spilled(run, store, str(tmp_path))
        assert mapped.mapped and mapped.file is not None and mapped.file.header.version == 1
        assert_same_rows(mapped, run)


def assert_same_rows(back: Run, run: Run) -> None:
    assert np.array_equal(back.rows, run.rows) and np.array_equal(back.hashes, run.hashes)


def test_plain_files_stay_what_they_were(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "a.run", os.O_RDWR | os.O_CREAT)
    try:
        assert write_run(some_run(1_000), fd).version == 1
    finally:
        os.close(fd)
