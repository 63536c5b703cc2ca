"""Deletion vectors: round trips, damage, and three foreign readers (delta-rs, delta-spark, the protocol's examples)."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from headwater.base.errors import CorruptionError, InputError
from headwater.lake import deletion_vectors as dvs
from headwater.lake.deletion_vectors import DeletionVector, FileWriter

POSITIONS = st.one_of(
    st.lists(st.integers(0, 200), max_size=50),
    st.lists(st.integers(0, (1 << 40)), max_size=50),
    st.builds(
        lambda a, n, step: list(range(a, a + n, step)),
        st.integers(0, 1 << 34),
        st.integers(0, 20_000),
        st.integers(1, 3),
    ),
)


def ranged(data: bytes) -> Any:
    return lambda path, start, length: data[start : start + length]


@given(POSITIONS)
def test_bitmaps_round_trip(rows: list[int]) -> None:
    bitmap = dvs.from_positions(np.array(rows, dtype=np.int64))
    assert dvs.deserialize(dvs.serialize(bitmap)) == BitMap64(rows)
    assert dvs.positions(bitmap).tolist() == sorted(set(rows))
    vector = dvs.inline(bitmap)
    assert dvs.read(DeletionVector.from_action(json.loads(json.dumps(vector.to_action()))), ranged(b""), "t") == bitmap


@given(st.lists(POSITIONS, min_size=1, max_size=5))
def test_a_file_holds_several_vectors(several: list[list[int]]) -> None:
    writer = FileWriter(prefix="ab")
    bitmaps = [BitMap64(rows) for rows in several]
    vectors = [writer.add(b) for b in bitmaps]
    assert writer.descriptors == vectors and all(v.relative_path() == writer.path for v in vectors)
    assert writer.path.startswith("ab/deletion_vector_")
    assert [dvs.read(v, ranged(writer.to_bytes()), "t") for v in vectors] == bitmaps


@given(POSITIONS, st.integers(0, 1 << 34), st.integers(0, 70_000))
def test_the_mask_is_true_where_the_row_is_kept(rows: list[int], start: int, length: int) -> None:
    kept = dvs.mask(BitMap64(rows), start, length)
    gone = {r - start for r in rows if start <= r < start + length}
    assert kept.dtype == np.bool_ and len(kept) == length
    assert set(np.flatnonzero(~kept).tolist()) == gone


def test_serialising_compresses_runs_and_leaves_the_bitmap_alone() -> None:
    scattered = dvs.from_positions(np.arange(500_000))
    assert len(dvs.serialize(scattered)) < 200
    assert len(scattered) == 500_000


def test_positions_must_be_countable() -> None:
    with pytest.raises(InputError, match="-3"):
        dvs.from_positions(np.array([1, -3]))
    with pytest.raises(InputError):
        dvs.serialize(BitMap64([1 << 63]))


@given(st.binary(max_size=64).filter(lambda b: len(b) % 4 == 0))
def test_z85_round_trips(data: bytes) -> None:
    assert dvs.z85_decode(dvs.z85_encode(data)) == data


@pytest.mark.parametrize("text", ["abc", "ab;de", "#####", "ab\u00e9de", "ab de", "~~~~~"])
def test_text_outside_z85_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        dvs.z85_decode(text)


def test_z85_wants_groups_of_four() -> None:
    with pytest.raises(InputError, match="3 bytes"):
        dvs.z85_encode(b"abc")


def test_the_protocols_examples() -> None:
    action = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    vector = DeletionVector.from_action(action | {"sizeInBytes": 40, "cardinality": 6})
    # Its header is of a layout that no reader takes any more (big endian), but text and positions are as ever.
    assert struct.unpack("<6H", dvs.z85_decode(vector.path_or_inline)[-12:]) == (3, 4, 7, 11, 18, 29)
    with pytest.raises(CorruptionError, match="magic number"):
        dvs.read(vector, ranged(b""), "t")
    assert vector.unique_id == "i" + action["pathOrInlineDv"] and vector.is_inline
    relative = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    assert relative.relative_path() == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    absolute = DeletionVector("p", "s3://t/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", 4, 40, 6)
    assert absolute.unique_id.endswith(".bin@4")
    with pytest.raises(InputError):
        absolute.relative_path()


def test_the_older_layout_is_read() -> None:
    def older(*maps: bytes) -> bytes:
        body = b"".join(struct.pack("<i", len(m)) + m for m in maps)
        return struct.pack("<ii", 1681511376, len(maps)) + body

    low, high = BitMap([1, 70_000]).serialize(), BitMap([2]).serialize()
    assert list(dvs.deserialize(older(low, high))) == [1, 70_000, (1 << 32) + 2]
    for damaged in (older(low, high)[:-1], older(low)[:8] + b"\xff" * 12, struct.pack("<ii", 1681511376, 1)):
        with pytest.raises(CorruptionError):
            dvs.deserialize(damaged)


def test_empty_buckets_as_the_jvm_writes_them() -> None:
    empty, two = BitMap().serialize(), BitMap([5, 7]).serialize()
    raw = struct.pack("<iQI", 1681511377, 2, 0) + empty + struct.pack("<I", 1) + two
    assert list(dvs.deserialize(raw)) == [(1 << 32) + 5, (1 << 32) + 7]


@given(st.data())
def test_damage_never_gives_another_bitmap(data: st.DataObject) -> None:
    writer = FileWriter()
    bitmap = BitMap64([1, 5, 70_000, 1 << 33, *range(100_000, 103_000, 2)])
    vector = writer.add(bitmap)
    raw = bytearray(writer.to_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptionError) as caught:
        dvs.read(vector, ranged(bytes(raw)), "the table")
    assert caught.value.code == "E5005" and caught.value.where == "the table"


@given(st.binary(max_size=80))
def test_any_bytes_are_a_bitmap_or_a_typed_error(data: bytes) -> None:
    for raw in (data, struct.pack("<i", 1681511377) + data, struct.pack("<i", 1681511376) + data):
        try:
            dvs.positions(dvs.deserialize(raw))
        except CorruptionError as e:
            assert e.code == "E5005"


def _entry(data: bytes, *, version: int = 1, checksum: int | None = None) -> bytes:
    crc = zlib.crc32(data) if checksum is None else checksum
    return bytes([version]) + struct.pack(">i", len(data)) + data + struct.pack(">I", crc)


GOOD = dvs.serialize(BitMap64([1, 2, 9]))
NAME = dvs.z85_encode(UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61").bytes)


@pytest.mark.parametrize(
    ("vector", "file", "why"),
    [
        (DeletionVector("u", NAME, 1, len(GOOD), 3), _entry(GOOD, version=2), "file version 2"),
        (DeletionVector("u", NAME, 1, len(GOOD), 3), _entry(GOOD)[:-2], "ends early"),
        (DeletionVector("u", NAME, 1, len(GOOD), 3), b"", "ends early"),
        (DeletionVector("u", NAME, 1, len(GOOD) - 1, 3), _entry(GOOD), "the log says"),
        (DeletionVector("u", NAME, 1, len(GOOD), 3), _entry(GOOD, checksum=1), "checksum"),
        (DeletionVector("u", NAME, 1, len(GOOD), 4), _entry(GOOD), "marks 3 rows"),
        (DeletionVector("u", NAME, 1, len(GOOD), 3), _entry(b"\1" + GOOD[1:]), "magic number"),
        (DeletionVector("u", NAME, 1, 4, 3), _entry(GOOD[:4]), "too few"),
        (DeletionVector("u", NAME, -1, 4, 3), _entry(GOOD), "make no range"),
        (DeletionVector("u", NAME[:9], 1, 4, 3), _entry(GOOD), "not a UUID"),
        (DeletionVector("i", "not z85!", None, 4, 3), b"", "not Z85"),
        (DeletionVector("i", dvs.z85_encode(b"\0" * 40), None, 33, 3), b"", "the log says 33"),
    ],
)
def test_each_check_has_its_message(vector: DeletionVector, file: bytes, why: str) -> None:
    with pytest.raises(CorruptionError, match=why):
        dvs.read(vector, ranged(file), "t")


def test_a_missing_offset_is_the_first_entry() -> None:
    for kind, place in (("u", NAME), ("p", "file:///t/x.bin")):
        for offset in (None, 0, 1):
            vector = DeletionVector(kind, place, offset, len(GOOD), 3)
            assert list(dvs.read(vector, ranged(_entry(GOOD)), "t")) == [1, 2, 9]


@pytest.mark.parametrize("action", [{}, {"storageType": "x", "pathOrInlineDv": "", "sizeInBytes": 1, "cardinality": 1}])
def test_a_descriptor_that_is_none(action: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="deletion vector"):
        DeletionVector.from_action(action)


# ---- foreign readers -------------------------------------------------------------------------------------


def write_table(folder: Path) -> list[int]:
    """Three files of ten rows; one inline vector, one in a file; and the keys that should be left."""
    deltalake = pytest.importorskip("deltalake")
    import pyarrow as pa

    properties = {"delta.enableDeletionVectors": "true"}
    for n in range(3):
        batch = pa.table({"k": pa.array(range(n * 10, n * 10 + 10), pa.int64())})
        deltalake.write_deltalake(str(folder), batch, mode="append", configuration=properties)
    adds = {}
    for entry in sorted((folder / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            if "add" in (action := json.loads(line)):
                adds[json.loads(action["add"]["stats"])["minValues"]["k"]] = action["add"]
    writer = FileWriter(prefix="zz")
    writer.add(BitMap64([0]))  # so that the vector that is used does not come first
    chosen = {0: dvs.inline(BitMap64([0, 3, 4, 5])), 10: writer.add(BitMap64(range(2, 10)))}
    lines: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 0, "operation": "DELETE"}}]
    for first, vector in chosen.items():
        add = adds[first]
        lines.append({"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 0}})
        stats = json.loads(add["stats"]) | {"tightBounds": False}
        lines.append({"add": add | {"stats": json.dumps(stats), "deletionVector": vector.to_action()}})
    (folder / "zz").mkdir()
    (folder / writer.path).write_bytes(writer.to_bytes())
    (folder / "_delta_log" / f"{3:020d}.json").write_text("\n".join(map(json.dumps, lines)))
    return [1, 2, 6, 7, 8, 9, 10, 11, *range(20, 30)]


@pytest.mark.interop
def test_delta_rs_reads_inline_and_stored_vectors(tmp_path: Path) -> None:
    import deltalake
    import pyarrow as pa

    left = write_table(tmp_path)
    table = deltalake.DeltaTable(str(tmp_path))
    rows = pa.table(deltalake.QueryBuilder().register("t", table).execute("select k from t order by k").read_all())
    assert rows["k"].to_pylist() == left
