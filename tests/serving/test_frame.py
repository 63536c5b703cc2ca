"""Frames equal what pyarrow writes and reads, for every type; and no bytes from outside get past the checks."""

from __future__ import annotations

import io
import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import HeadwaterError, InputError, UnsupportedError
from headwater.serving.flatbuffer import END, read_message
from headwater.serving.frame import Frame, FrameLayout, FrameView
from headwater.serving.frame_reading import FrameReader, read_batches, read_frame

FIXED = [
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(20, 3), pa.decimal256(50, 2), pa.decimal32(7, 2), pa.decimal64(15, 2)),
    *(pa.date32(), pa.date64(), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.time32("s"), pa.time64("us")),
    *(pa.duration("ms"), pa.binary(16)),
]
TYPES = [*FIXED, pa.utf8(), pa.binary(), *(pa.list_(kind) for kind in FIXED)]
ROWS = [0, 1, 7, 8, 9, 63, 64, 65, 1000, 5000]


def raw(kind: pa.DataType, rows: int, chance: random.Random) -> pa.Array:
    """Values of the type that pyarrow takes for valid."""
    if pa.types.is_list(kind):
        sizes = [chance.randrange(4) for _ in range(rows)]
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32), pa.int32())
        items = column(kind.value_type, sum(sizes), chance)
        # The field of the items keeps its name and nullability.
        return pa.ListArray.from_arrays(offsets, items, type=kind)
    if pa.types.is_string(kind):
        return pa.array([chance.choice(["", "a", "schön", "日本", "x" * 40]) + str(n) for n in range(rows)], kind)
    if pa.types.is_binary(kind):
        return pa.array([chance.randbytes(chance.randrange(9)) for _ in range(rows)], kind)
    if pa.types.is_boolean(kind):
        return pa.array([chance.random() < 0.5 for _ in range(rows)], kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(chance.randrange(-9999, 9999)) for _ in range(rows)], kind)
    if pa.types.is_floating(kind):  # NaN equals nothing
        return pa.array([chance.randrange(-999, 999) / 8 for _ in range(rows)], pa.float32()).cast(kind)
    if pa.types.is_date64(kind):
        return pa.array([chance.randrange(9999) for _ in range(rows)], pa.int32()).cast(pa.date32()).cast(kind)
    if pa.types.is_time(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array([chance.randrange(86400) for _ in range(rows)], width).cast(kind)
    size = kind.bit_width // 8
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(chance.randbytes(size * rows))])


def column(kind: pa.DataType, rows: int, chance: random.Random, nulls: float = 0.2) -> pa.Array:
    """The same with some of them null."""
    whole = raw(kind, rows, chance)
    mask = pa.array([chance.random() < nulls for _ in range(rows)], pa.bool_())
    index = pa.array([None if m else n for n, m in enumerate(mask.to_pylist())], pa.int64())
    return whole.take(index)


def written(batch: pa.RecordBatch, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def put(frame: Frame, buffer: int, data: bytes) -> None:
    at = int(frame.places[buffer])
    assert len(data) <= frame.lengths[buffer]
    frame.buffer[at : at + len(data)] = data


def bits(valid: list[bool]) -> bytes:
    return np.packbits(np.array(valid, bool), bitorder="little").tobytes()


def framed(layout: FrameLayout, batch: pa.RecordBatch) -> Frame:
    """A frame with the rows of a batch, filled by the positions that the layout gives."""
    compact = pa.ipc.open_stream(written(batch)).read_next_batch()  # offsets from 0, no slices
    sizes = []
    for spec, array in zip(layout.columns, compact.columns, strict=True):
        if spec.form == "bytes":
            sizes.append(array.buffers()[2].size if array.buffers()[2] else 0)
        elif spec.form == "list":
            sizes.append(len(array.values))
    frame = layout.allocate(batch.num_rows, sizes)
    counts = []
    for spec, array in zip(layout.columns, compact.columns, strict=True):
        counts.append(array.null_count)
        put(frame, spec.buffer, bits(array.is_valid().to_pylist()))
        buffers = array.buffers()[1:]
        if spec.form == "list":
            counts.append(array.values.null_count)
            put(frame, spec.buffer + 2, bits(array.values.is_valid().to_pylist()))
            buffers[1] = None
        for place, buffer in enumerate(buffers, spec.buffer + 1):
            if buffer is not None:
                put(frame, place, buffer.to_pybytes()[: frame.lengths[place]])
    frame.set_null_counts(counts)
    return frame


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_frame_holds_what_pyarrow_holds(kind: pa.DataType) -> None:
    layout = FrameLayout(pa.schema([("k", kind)]))
    chance = random.Random(str(kind))
    for rows in ROWS:
        for nulls in (0.0, 0.3, 1.0):
            batch = pa.record_batch([column(kind, rows, chance, nulls)], schema=layout.schema)
            frame = framed(layout, batch)
            read = frame.batch()
            read.validate(full=True)
            assert read.equals(batch) and frame.reader().read_all().num_rows == rows
            if rows > 9:
                assert read.slice(3, rows - 5).equals(batch.slice(3, rows - 5))
            view = layout.read(frame.buffer)
            assert isinstance(view, FrameView) and view.rows == rows and view.batch().equals(batch)
            valid = view.valid(0)
            assert (np.ones(rows, bool) if valid is None else valid).tolist() == batch.column(0).is_valid().to_pylist()


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_streams_of_pyarrow_are_read(kind: pa.DataType) -> None:
    layout = FrameLayout(pa.schema([("k", kind), ("n", pa.int32())]))
    reader = FrameReader()
    chance = random.Random(str(kind))
    for rows in (0, 1, 9, 1000):
        for nulls in (0.0, 0.3):
            numbers = pa.array(range(rows), pa.int32())
            whole = pa.record_batch([column(kind, rows, chance, nulls), numbers], schema=layout.schema)
            for batch in (whole, whole.slice(rows // 3, rows // 2)):
                stream = written(batch)
                assert layout.schema_message == stream[: len(layout.schema_message)]
                view = layout.read(stream)
                if view is None:
                    assert batch.num_rows == 0  # pyarrow leaves out a length that is 0
                else:
                    assert view.batch().equals(batch) and view.values(1).tolist() == batch.column(1).to_pylist()
                for read in (read_frame(stream, layout), reader.read(stream), read_batches(stream)):
                    assert (read.batch() if isinstance(read, FrameView) else read).equals(batch)


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6), st.integers(0, 300), st.randoms(use_true_random=False))
def test_any_schema(kinds: list[pa.DataType], rows: int, chance: random.Random) -> None:
    nullable = [chance.random() < 0.5 for _ in kinds]
    fields = [pa.field(f"c{n}", kind, nullable=nullable[n]) for n, kind in enumerate(kinds)]
    layout = FrameLayout(pa.schema(fields))
    arrays = [column(k, rows, chance, 0.3 if n else 0.0) for k, n in zip(kinds, nullable, strict=True)]
    batch = pa.record_batch(arrays, schema=layout.schema)
    frame = framed(layout, batch)
    frame.batch().validate(full=True)
    assert frame.batch().equals(batch)
    view = layout.read(frame.buffer)
    assert view is not None and view.batch().equals(batch)
    assert (frame.places % 8 == 0).all() and frame.buffer.endswith(END)


def test_an_empty_frame_is_valid_at_once() -> None:
    layout = FrameLayout(pa.schema([(f"c{n}", kind) for n, kind in enumerate(TYPES)]))
    frame = layout.allocate(11, [5] * len(layout.variable))
    batch = frame.batch()
    batch.validate(full=True)
    assert batch.num_rows == 11 and all(column.null_count == 0 for column in batch.columns)
    assert all(frame.validity(n).tolist() == [255, 7] for n in range(len(TYPES)))


@pytest.mark.parametrize("rows", [0, 1, 13, 1000])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int64(), pa.float16(), pa.uint8()], ids=str)
def test_columns_of_equal_width_lie_at_a_constant_stride(kind: pa.DataType, rows: int) -> None:
    layout = FrameLayout(pa.schema([(f"c{n}", kind) for n in range(10)]))
    for _ in range(2):  # made, and made from the kept image
        frame = layout.allocate(rows)
        places = [int(frame.places[column.buffer + 1]) for column in layout.columns]
        assert len(set(np.diff(places))) == 1 and (places[1] - places[0]) % (kind.bit_width // 8) == 0


def test_frames_of_one_layout_do_not_share_bytes() -> None:
    layout = FrameLayout(pa.schema([("a", pa.int32())]))
    one, two = layout.allocate(4), layout.allocate(4)
    one.values(0)[:] = 7
    one.set_null_counts([2])
    three = layout.allocate(4)
    assert two.values(0).tolist() == three.values(0).tolist() == [0] * 4
    assert two.null_counts.tolist() == three.null_counts.tolist() == [0]


def test_many_row_counts_are_not_all_kept() -> None:
    layout = FrameLayout(pa.schema([("a", pa.float64())]))
    for rows in range(5001):
        frame = layout.allocate(rows)
        view = layout.read(frame.buffer)
        assert frame.rows == rows and view is not None and view.rows == rows
    assert len(layout._plans) <= 64 and layout._kept_bytes <= 4 << 20
    assert sum(len(plan.image or b"") for plan in layout._plans.values()) == layout._kept_bytes


def test_what_no_frame_can_have() -> None:
    for kind in (pa.null(), pa.struct([("a", pa.int8())]), pa.list_(pa.utf8()), pa.large_utf8(), pa.binary(0)):
        with pytest.raises(UnsupportedError, match="E3004"):
            FrameLayout(pa.schema([("k", kind)]))
    with pytest.raises(InputError, match="E1760"):
        FrameLayout(pa.schema([]))
    with pytest.raises(InputError, match="E1761"):
        FrameLayout(pa.schema([("k", pa.utf8())])).allocate(1, [2**31])


# -- bytes from outside --------------------------------------------------------------------------------------------------

KEYS = FrameLayout(pa.schema([("k", pa.utf8()), ("n", pa.int64())]))
LISTS = FrameLayout(pa.schema([("k", pa.list_(pa.float32())), ("b", pa.bool_())]))
PLAIN = FrameLayout(pa.schema([("a", pa.float32()), ("b", pa.float32())]))


def sample(layout: FrameLayout, nulls: float = 0.3) -> bytes:
    chance = random.Random(7)
    arrays = [column(spec.type, 20, chance, nulls) for spec in layout.columns]
    return bytes(framed(layout, pa.record_batch(arrays, schema=layout.schema)).buffer)


def attempt(body: bytes, layout: FrameLayout) -> None:
    """Reading gives a typed error, or rows that are sound."""
    view = layout.read(body)
    if view is not None:
        assert ((view.places >= 0) & (view.lengths >= 0) & (view.places + view.lengths <= len(body))).all()
        view.batch().validate(full=True)
    for reader in (FrameReader([layout]), FrameReader()):
        try:
            found = reader.read(body)
        except HeadwaterError as error:
            assert error.code in ("E1760", "E3004") and error.hint
            assert view is None
        else:
            batch = found.batch() if isinstance(found, FrameView) else found
            batch.validate(full=True)
            assert batch.num_rows <= 8 * len(body)


@pytest.mark.parametrize("layout", [KEYS, LISTS, PLAIN], ids=["keys", "lists", "plain"])
def test_truncated_frames(layout: FrameLayout) -> None:
    body = sample(layout)
    for length in range(len(body)):
        attempt(body[:length], layout)
        attempt(body[length:], layout)
    # Only the end marker may be missing.
    assert layout.read(body[:-8]) is not None and layout.read(body[:-9]) is None
    with pytest.raises(InputError, match="E1760"):
        read_batches(body[:-9])


@pytest.mark.parametrize("layout", [KEYS, LISTS, PLAIN], ids=["keys", "lists", "plain"])
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_wrong_numbers(layout: FrameLayout, nulls: float) -> None:
    body = sample(layout, nulls)
    hostile = [-1, -8, 1, 7, 19, 21, 160, 161, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**31)]
    message = read_message(body, len(layout.schema_message))
    assert message is not None and message.rows_at is not None and message.body_length_at is not None
    places = [message.rows_at, message.body_length_at]
    places += range(message.nodes_at, message.nodes_at + 16 * message.nodes, 8)
    places += range(message.buffers_at, message.buffers_at + 16 * message.buffers, 8)
    for at in places:
        for number in hostile:
            attempt(body[:at] + struct.pack("<q", number) + body[at + 8 :], layout)
    # All lengths and the row count at once: nothing may be computed from them unchecked.
    for number in hostile:
        changed = bytearray(body)
        for at in places:
            struct.pack_into("<q", changed, at, number)
        attempt(bytes(changed), layout)


@pytest.mark.parametrize("layout", [KEYS, LISTS], ids=["keys", "lists"])
def test_wrong_offsets(layout: FrameLayout) -> None:
    body = sample(layout)
    view = layout.read(body)
    assert view is not None
    start = int(view.places[1])
    for row in range(21):
        for number in (-1, -(2**31), 2**31 - 1, 2**20, 10**4, 3):
            at = start + 4 * row
            attempt(body[:at] + struct.pack("<i", number) + body[at + 4 :], layout)


def test_decreasing_offsets_and_offsets_past_the_end_are_refused() -> None:
    frame = FrameLayout(pa.schema([("k", pa.utf8())])).allocate(3, [6])
    for offsets in ([0, 4, 2, 6], [0, 2, 4, 7], [-1, 2, 4, 6], [0, -5, 4, 6], [6, 0, 0, 0]):
        frame.offsets(0)[:] = offsets
        assert frame.layout.read(frame.buffer) is None
        with pytest.raises(InputError, match="E1760"):
            read_batches(frame.buffer)
    frame.offsets(0)[:] = [0, 2, 4, 6]
    assert frame.layout.read(frame.buffer) is not None


def test_strings_are_utf8() -> None:
    layout = FrameLayout(pa.schema([("k", pa.utf8())]))
    frame = layout.allocate(2, [4])
    frame.values(0)[:] = np.frombuffer("öß".encode(), np.uint8)
    for offsets, sound in (
        ([0, 2, 4], True),
        ([0, 4, 4], True),
        ([2, 4, 4], True),
        ([0, 1, 4], False),
        ([1, 2, 4], False),
    ):
        frame.offsets(0)[:] = offsets
        assert (layout.read(frame.buffer) is not None) is sound, offsets
        if not sound:
            with pytest.raises(InputError, match="E1760"):
                read_frame(frame.buffer, layout)
    frame.values(0)[:] = 0xFF
    frame.offsets(0)[:] = [0, 2, 4]
    assert layout.read(frame.buffer) is None


@pytest.mark.parametrize("layout", [KEYS, LISTS, PLAIN], ids=["keys", "lists", "plain"])
def test_null_counts_that_lie_are_refused(layout: FrameLayout) -> None:
    body = bytearray(sample(layout))
    message = read_message(bytes(body), len(layout.schema_message))
    assert message is not None
    (true,) = struct.unpack_from("<q", body, message.nodes_at + 8)
    assert true > 0
    for count in (true - 1, true + 1, 20, 21, -1):
        struct.pack_into("<q", body, message.nodes_at + 8, count)
        assert layout.read(body) is None


@pytest.mark.parametrize("layout", [KEYS, LISTS, PLAIN], ids=["keys", "lists", "plain"])
def test_random_damage(layout: FrameLayout) -> None:
    body = sample(layout)
    chance = random.Random(11)
    for at in range(len(body)):
        attempt(body[:at] + bytes([body[at] ^ (1 << chance.randrange(8))]) + body[at + 1 :], layout)
        attempt(body[:at] + bytes([chance.choice([0, 1, 127, 128, 255])]) + body[at + 1 :], layout)
    for _ in range(200):
        changed = bytearray(body)
        for _ in range(chance.randrange(1, 9)):
            changed[chance.randrange(len(body))] = chance.randrange(256)
        attempt(bytes(changed), layout)


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    attempt(body, KEYS)
    attempt(END[:4] + body, KEYS)
    attempt(KEYS.schema_message + body, KEYS)
    attempt(KEYS.template + body, KEYS)


def test_trailing_bytes_are_not_ignored() -> None:
    body = sample(PLAIN)
    assert PLAIN.read(body) is not None and PLAIN.read(body + b"x") is None
    assert read_batches(body + b"x").num_rows == 20  # behind the end of the stream, as pyarrow has it
    with pytest.raises(InputError, match="E1760"):
        read_batches(body[:-8] + b"x")


def test_rows_that_are_checked_by_pyarrow_are_checked_as_well() -> None:
    """`read_rows` takes what `read` takes, and of other bytes only what the reader of any stream makes the same of."""
    layout = FrameLayout(pa.schema([("s", pa.utf8()), ("v", pa.list_(pa.int16())), ("n", pa.int32())]))
    frame = layout.allocate(3, (5, 2))
    frame.offsets(0)[:], frame.offsets(1)[:], frame.validity(2)[0] = [0, 2, 2, 5], [0, 1, 2, 2], 5
    frame.values(0)[:] = np.frombuffer("éabc".encode(), np.uint8)
    frame.set_null_counts([0, 0, 0, 1])
    body = bytes(frame.buffer)
    for at in range(len(body)):
        for flipped in (1, 8, 128, 255):
            damaged = bytearray(body)
            damaged[at] ^= flipped
            view, rows = layout.read(damaged), layout.read_rows(damaged)
            if view is not None:
                assert rows is not None and rows.equals(view.batch())
            elif rows is not None:
                assert rows.equals(read_batches(damaged))
        assert layout.read_rows(body[:at]) is None or layout.read(body[:at]) is not None


def test_other_streams_are_read_and_made_plain() -> None:
    values = ["a", None, "schön" * 9, ""]
    for kind in (pa.large_utf8(), pa.string_view(), pa.utf8()):
        batch = pa.record_batch(
            {"k": pa.array(values, kind), "l": pa.array([[1], None, [], [2]], pa.large_list(pa.int8()))}
        )
        read = read_batches(written(batch))
        assert read.schema.field("k").type == pa.utf8() and read.schema.field("l").type == pa.list_(pa.int8())
        assert read.column("k").to_pylist() == values and read.column("l").to_pylist() == [[1], None, [], [2]]
    for kind in (pa.large_binary(), pa.binary_view()):
        assert read_batches(written(pa.record_batch({"k": pa.array([b"\xff"], kind)}))).column(0).to_pylist() == [
            b"\xff"
        ]
    for batches in (0, 1, 3):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, pa.schema([("k", pa.int64())])) as writer:
            for n in range(batches):
                writer.write_batch(pa.record_batch({"k": pa.array([n, n], pa.int64())}))
        assert read_batches(sink.getvalue()).column(0).to_pylist() == [0, 0, 1, 1, 2, 2][: 2 * batches]


def test_what_could_grow_is_refused() -> None:
    wide = pa.record_batch({"k": pa.array(["x" * 100_000])})
    compressed = [written(wide, compression=codec) for codec in ("lz4", "zstd")]
    coded = written(pa.record_batch({"k": pa.array(["a", "b"]).dictionary_encode()}))
    nothing = written(pa.record_batch({"k": pa.nulls(1000)}))
    runs = written(
        pa.record_batch({"k": pa.RunEndEncodedArray.from_arrays(pa.array([10**6], pa.int32()), pa.array([1]))})
    )
    for body in [*compressed, coded, nothing, runs]:
        with pytest.raises((InputError, UnsupportedError), match=r"E1760|E3004"):
            read_batches(body)
    # A million views of one long string.
    data = b"x" * 100_000
    view = struct.pack("<i4sii", len(data), data[:4], 0, 0)
    array = pa.Array.from_buffers(pa.string_view(), 1000, [None, pa.py_buffer(view * 1000), pa.py_buffer(data)])
    array.validate(full=True)
    with pytest.raises(InputError, match="amount to 100,000,000 bytes"):
        read_batches(written(pa.record_batch({"k": array})))


def test_a_reader_remembers_schemas_but_not_without_limit() -> None:
    reader = FrameReader([PLAIN])
    for n in range(600):
        body = written(pa.record_batch({f"c{n}": pa.array([n], pa.int64())}))
        assert isinstance(reader.read(body), pa.RecordBatch)
        assert isinstance(reader.read(body), FrameView)
    assert len(reader._known) <= 256 and isinstance(reader.read(sample(PLAIN)), FrameView)
