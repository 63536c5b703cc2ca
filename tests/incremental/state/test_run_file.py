"""Run files come back as they were; anything else is a typed error that names the file."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.incremental.state.history import ORDERS, orders_change

from headwater.base.errors import CorruptionError
from headwater.incremental.layout import Layout, Order
from headwater.incremental.run import Run, merged
from headwater.incremental.run_file import RunFile, write_run
from headwater.incremental.run_header import ALIGNMENT
from headwater.incremental.run_merge import merge_to_file
from headwater.incremental.zset import ZSet

SECTIONS = ("rows", "hashes", "heap", "directory", "filter")


def some_run(rows: int | None = None, step: int = 0) -> Run:
    table, weights = orders_change(1, step)
    n = len(table) if rows is None else rows
    return Run.of(ZSet.packed(ORDERS, table[:n], weights[:n]))


def write(run: Run, path: Path) -> RunFile:
    return write_by(lambda fd: write_run(run, fd), path)


def write_by(how: Callable[[int], object], path: Path) -> RunFile:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        how(fd)
    finally:
        os.close(fd)
    return RunFile.read(str(path))


def facts(run: Run) -> tuple[list[list[int]], list[int], list[object]]:
    # Long strings are compared by their bytes: where they lie in the heap is nobody's business.
    z = run.zset()
    return run.rows[:, -1:].tolist(), run.hashes.tolist(), z.to_arrow().to_pylist()


@pytest.mark.parametrize("rows", [0, 1, 2, 63, 64, 65, 1000, None])
def test_a_run_comes_back(rows: int | None, tmp_path: Path) -> None:
    run = some_run(rows)
    file = write(run, tmp_path / "a.run")
    back = file.open(ORDERS)
    assert back.mapped == (rows is None)
    assert facts(back) == facts(run)
    assert np.array_equal(back.directory, run.directory)
    assert back.file is file
    file.verify()
    header = file.header
    assert header.rows == len(run)
    assert header.length == (tmp_path / "a.run").stat().st_size
    assert all(s.offset % ALIGNMENT == 0 for s in header.sections)
    assert back.most == header.most == run.weight_bound()
    assert header.most >= max(np.abs(run.rows[:, -1]), default=0)
    if len(run):
        assert (header.least_hash, header.greatest_hash) == (min(run.hashes), max(run.hashes))


def test_the_range_of_the_first_part_of_the_order_is_known(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("ts", pa.int64(), nullable=False)])
    table = pa.table({"k": [1, 2, 3], "ts": [30, -7, 12]}, schema=schema)
    ordered = Run.of(ZSet.packed(Layout(schema, keys=1, order=[Order("ts")]), table))
    assert write(ordered, tmp_path / "a").header.order == (-7, 30)
    assert write(Run.of(ZSet.packed(Layout(schema, keys=1), table)), tmp_path / "b").header.order is None


@pytest.mark.parametrize("bound", [None, 20])
def test_a_merge_into_a_file_is_the_merge_in_memory(bound: int | None, tmp_path: Path) -> None:
    left, right = some_run(), some_run(step=1)
    assert len(left) > len(right) > 0
    limit = None if bound is None else (ORDERS.column("amount").word, bound)
    file = write_by(lambda fd: merge_to_file(left, right, limit, fd), tmp_path / "a.run")
    assert facts(file.open(ORDERS)) == facts(merged([left, right], limit))
    file.verify()


def test_what_cancels_out_takes_no_room(tmp_path: Path) -> None:
    left = some_run()
    right = Run.of(-left.zset())
    file = write_by(lambda fd: merge_to_file(left, right, None, fd), tmp_path / "a.run")
    assert len(file.open(ORDERS)) == 0
    assert (tmp_path / "a.run").stat().st_size < 1024
    most = Run.of(-left.zset().filtered(np.arange(len(left) - 100)))
    file = write_by(lambda fd: merge_to_file(left, most, None, fd), tmp_path / "b.run")
    assert facts(file.open(ORDERS)) == facts(merged([left, most]))
    file.verify()
    assert (tmp_path / "b.run").stat().st_size < 32 * 1024


@pytest.mark.parametrize("rows", [500, None])
@pytest.mark.parametrize("section", [*range(len(SECTIONS)), -1])
def test_a_flipped_bit_is_found_wherever_it_is(section: int, rows: int | None, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    header = write(some_run(rows), path).header
    good = path.read_bytes()
    if section < 0:
        first, length = 0, header.size
    else:
        first, length = header.sections[section].offset, -(-header.sections[section].length // ALIGNMENT) * ALIGNMENT
    random = np.random.default_rng(section + 1)
    for at in [first, first + length - 1, *(first + random.integers(0, length, 20))]:
        bad = bytearray(good)
        bad[at] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(bad)
        with pytest.raises(CorruptionError) as caught:
            RunFile.read(str(path)).verify()
        assert caught.value.code in {"E5008", "E5010"}
        assert "a.run" in caught.value.message
        assert caught.value.hint
        if section >= 0:
            assert SECTIONS[section] in caught.value.message


def test_every_byte_of_a_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    header = write(some_run(3), path).header
    good = path.read_bytes()
    assert len(good) == header.length < 2048
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        path.write_bytes(bad)
        with pytest.raises(CorruptionError):
            RunFile.read(str(path)).verify()


@pytest.mark.parametrize("rows", [40, None])
def test_a_file_that_ends_early_or_late_is_refused(rows: int | None, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    header = write(some_run(rows), path).header
    good = path.read_bytes()
    ends = {0, 1, 7, 8, 9, 95, 96, 219, 220, header.size - 1, header.size, len(good) - 1}
    ends |= {s.offset + d for s in header.sections for d in (-1, 0, 1)} | {s.offset + s.length for s in header.sections}
    for end in sorted(ends):
        if end < len(good):
            path.write_bytes(good[:end])
            with pytest.raises(CorruptionError, match=r"run file `a\.run` cannot be used"):
                RunFile.read(str(path))
    path.write_bytes(good + b"\0")
    with pytest.raises(CorruptionError, match="instead of"):
        RunFile.read(str(path))


def test_a_file_that_shrinks_after_its_header_was_read_is_refused(tmp_path: Path) -> None:
    file = write(some_run(), tmp_path / "a.run")
    os.truncate(tmp_path / "a.run", file.header.length // 2)
    with pytest.raises(CorruptionError, match="length has changed"):
        file.open(ORDERS)


def test_files_that_are_missing_or_foreign_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptionError, match="it is missing"):
        RunFile.read(str(tmp_path / "none.run"))
    with pytest.raises(CorruptionError, match="it is missing"):
        RunFile.read(str(tmp_path))
    (tmp_path / "a.run").write_bytes(b"PAR1" + bytes(5000))
    with pytest.raises(CorruptionError, match="it is not a run file"):
        RunFile.read(str(tmp_path / "a.run"))


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write(some_run(10), path)
    for at, version in ((8, 4), (12, 9)):
        bad = bytearray(path.read_bytes())
        size = struct.unpack_from("<I", bad, 44)[0]
        struct.pack_into("<I", bad, at, version)
        struct.pack_into("<I", bad, size - 4, zlib.crc32(bad[: size - 4]))
        (tmp_path / "b.run").write_bytes(bad)
        with pytest.raises(CorruptionError, match=rf"format version {version}") as caught:
            RunFile.read(str(tmp_path / "b.run"))
        assert caught.value.code == "E5010"


def test_a_header_that_points_out_of_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write(some_run(10), path)
    for at in (24, 40, 96, 104):  # rows, bits, offset and length of the first section
        bad = bytearray(path.read_bytes())
        size = struct.unpack_from("<I", bad, 44)[0]
        bad[at + 1] ^= 1
        struct.pack_into("<I", bad, size - 4, zlib.crc32(bad[: size - 4]))
        (tmp_path / "b.run").write_bytes(bad)
        with pytest.raises(CorruptionError, match="sections do not fit"):
            RunFile.read(str(tmp_path / "b.run"))


@pytest.mark.parametrize(
    "layout",
    [
        Layout(ORDERS.schema, keys=1),
        Layout(ORDERS.schema, keys=2, order=ORDERS.order),
        Layout(ORDERS.schema, keys=1, order=ORDERS.order, weights=2),
        Layout(ORDERS.schema.set(1, pa.field("amount", pa.int32())), keys=1, order=ORDERS.order),
    ],
    ids=["order", "key", "weights", "type"],
)
def test_a_file_of_another_layout_is_refused(layout: Layout, tmp_path: Path) -> None:
    file = write(some_run(10), tmp_path / "a.run")
    with pytest.raises(CorruptionError) as caught:
        file.open(layout)
    assert caught.value.code == "E5011"
    assert layout.fingerprint in caught.value.message


def test_a_damaged_run_is_found_when_it_is_merged(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    header = write(some_run(), path).header
    with open(path, "r+b") as f:
        f.seek(header.sections[0].offset + 80)
        f.write(b"\xaa\x55")
    back = RunFile.read(str(path)).open(ORDERS)
    with pytest.raises(CorruptionError, match="checksum of its rows"):
        merged([back, some_run(100)])


def test_a_damaged_run_is_found_when_several_are_merged(tmp_path: Path) -> None:
    layout = Layout(pa.schema([("k", pa.int64()), ("v", pa.int64())]), keys=1)
    table = pa.table(
        {"k": list(range(9_000)), "v": [7] * 9_000}, schema=layout.schema
    )  # too many to be checked at once
    run = Run.of(ZSet.packed(layout, table))
    path = tmp_path / "a.run"
    header = write(run, path).header
    with open(path, "r+b") as f:
        f.seek(header.sections[0].offset + 80)
        f.write(b"\xaa\x55")
    back = RunFile.read(str(path)).open(layout)
    with pytest.raises(CorruptionError, match="checksum of its rows"):
        merged([run, run, back])


@given(st.lists(st.tuples(st.integers(-5, 5), st.none() | st.text(max_size=20), st.integers(-2, 2)), max_size=60))
def test_any_rows_come_back(tmp_path: Path, rows: list[tuple[int, str | None, int]]) -> None:
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    layout = Layout(schema, keys=1, order=[Order("s")])
    table = pa.table({"k": [r[0] for r in rows], "s": [r[1] for r in rows]}, schema=schema)
    run = Run.of(ZSet.packed(layout, table, np.array([r[2] for r in rows], dtype=np.int64)))
    path = tmp_path / "a.run"
    path.unlink(missing_ok=True)
    back = write(run, path).open(layout)
    assert facts(back) == facts(run)
