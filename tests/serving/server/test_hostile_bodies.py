"""Bodies that were made to hurt: each is refused by a status of its own, soon, and in little memory."""

from __future__ import annotations

import io
import json
import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.serving.server.running import ARROW, RunningServer

JSON = "application/json"
FETCH = "/v1/tables/numbers/fetch"
TYPES = "/v1/tables/types/fetch"


def stream(batch: pa.RecordBatch, times: int = 1, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for _ in range(times):
            writer.write_batch(batch)
    return sink.getvalue()


NUMBERS = stream(pa.record_batch({"id": pa.array(range(100))}))
STRINGS = stream(pa.record_batch({"id": [f"key {n}" for n in range(100)]}))


def memory_of(server: RunningServer) -> int:
    """The most memory that a worker has had, in bytes."""
    peaks = []
    for pid in server.children():
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        peaks += [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")]
    return max(peaks)


@pytest.mark.parametrize("body", [NUMBERS, STRINGS], ids=["numbers", "strings"])
def test_arrow_that_is_cut_off(server: RunningServer, body: bytes) -> None:
    path = FETCH if body is NUMBERS else TYPES
    with server.wire() as wire:
        assert wire.ask("POST", path, body, content_type=ARROW).status == 200
        for size in range(0, len(body) - 8, 7):
            found = wire.ask("POST", path, body[:size], content_type=ARROW)
            assert found.status == 400, (size, found.body)


@pytest.mark.parametrize("body", [NUMBERS, STRINGS], ids=["numbers", "strings"])
def test_arrow_with_other_bytes_in_it(server: RunningServer, body: bytes) -> None:
    """Lengths, offsets and types that are not what they were: an answer or a refusal, never a failure."""
    path = FETCH if body is NUMBERS else TYPES
    dice = random.Random(7)
    odd = [0, 1, 0x7F, 0x80, 0xFF, 8, 64]
    before = memory_of(server)
    with server.wire() as wire:
        for _ in range(1500):
            changed = bytearray(body)
            for _ in range(dice.choice([1, 1, 2, 8])):
                at = dice.randrange(len(changed))
                if dice.random() < 0.3 and at + 8 <= len(changed):
                    struct.pack_into("<q", changed, at, dice.choice([-1, 2**62, -(2**63), 2**31, 1 << 40]))
                else:
                    changed[at] = dice.choice(odd)
            found = wire.ask("POST", path, bytes(changed), content_type=ARROW)
            assert found.status in (200, 400, 413), found.body
    assert memory_of(server) < before + (64 << 20)
    assert server.fetch("numbers", [1]).status == 200


def offsets_of(body: bytes) -> int:
    """Where the offsets of the strings lie."""
    wanted = struct.pack("<5i", *(n * 5 for n in range(5)))
    return body.index(wanted)


@pytest.mark.parametrize("value", [-1, 2**31 - 1, -(2**31), 1_000_000, 3])
@pytest.mark.parametrize("place", [0, 1, 50, 100])
def test_offsets_that_point_elsewhere(server: RunningServer, place: int, value: int) -> None:
    """Also where frames that begin like this one are remembered."""
    changed = bytearray(STRINGS)
    struct.pack_into("<i", changed, offsets_of(STRINGS) + 4 * place, value)
    with server.wire() as wire:
        for _ in range(3):
            assert wire.ask("POST", TYPES, STRINGS, content_type=ARROW).status == 200
        found = wire.ask("POST", TYPES, bytes(changed), content_type=ARROW)
        assert found.status == 400 or (value == 3 and place in (0, 1) and found.status == 200), found


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_arrow_that_grows_when_it_is_unpacked(server: RunningServer, codec: str) -> None:
    bomb = stream(pa.record_batch({"id": pa.array([0] * 4_000_000)}), compression=codec)
    assert len(bomb) < 1_000_000
    before = memory_of(server)
    assert server.ask("POST", FETCH, bomb, content_type=ARROW).status in (400, 413)
    assert memory_of(server) < before + (24 << 20)


def test_more_keys_than_bytes(server: RunningServer) -> None:
    """A column of nulls, or of one value, has any number of rows in next to no bytes."""
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([2_000_000_000], pa.int32()), pa.array([1]))
    for column in (pa.nulls(50_000_000), ends):
        body = stream(pa.record_batch({"id": column}))
        assert len(body) < 1000
        assert server.ask("POST", FETCH, body, content_type=ARROW).status in (400, 413)


def test_too_many_keys_in_any_form(server: RunningServer) -> None:
    many = stream(pa.record_batch({"id": pa.array(range(100_001))}))
    assert server.ask("POST", FETCH, many, content_type=ARROW).status == 413
    pieces = stream(pa.record_batch({"id": pa.array(range(1000))}), times=101)
    assert server.ask("POST", FETCH, pieces, content_type=ARROW).status == 413
    body = json.dumps({"keys": [1] * 100_001}).encode()
    assert server.ask("POST", FETCH, body, content_type=JSON).status == 413
    enough = stream(pa.record_batch({"id": pa.array(range(100_000))}))
    assert server.ask("POST", FETCH, enough, content_type=ARROW, accept=ARROW).status == 200


@pytest.mark.parametrize(
    "batch",
    [
        pa.record_batch({"id": pa.array(["a"]).dictionary_encode()}),
        pa.record_batch({"id": pa.array([[1]])}),
        pa.record_batch({"id": pa.array([{"a": 1}])}),
        pa.record_batch({"id": pa.array([1.5])}),
        pa.record_batch({"id": pa.array([float("nan")])}),
        pa.record_batch({"id": pa.array([True])}),
        pa.record_batch({"id": pa.array([2**63], pa.uint64())}),
        pa.record_batch({"id": pa.array([b"x"])}),
        pa.record_batch({"a": [1], "b": [2]}),
        pa.record_batch([pa.array([1]), pa.array([2])], names=["id", "id"]),
        pa.record_batch({}),
    ],
    ids=str,
)
def test_arrow_of_other_types(server: RunningServer, batch: pa.RecordBatch) -> None:
    assert server.ask("POST", FETCH, stream(batch), content_type=ARROW).status == 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"keys": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"keys": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b'{"keys": [NaN]}',
        b'{"keys": [Infinity]}',
        b'{"keys": [1e400]}',
        b'{"keys": [' + b"9" * 5000 + b"]}",
        b'{"keys": ["\\ud800"]}',
        b'{"keys": ["\xff"]}',
        b'{"keys": [1',
        b'{"keys": [1]} trailing',
        b'{"keys": [1], "columns": [1]}',
        b'{"keys": [1], "columns": {"a": 1}}',
        b'{"keys": [1], "wait": "soon"}',
        b'{"keys": [1], "wait": -1}',
        b'{"keys": [1], "min_frontier": 5}',
        b'{"keys": [1], "min_frontier": "' + b"a@1 " * 10_000 + b'"}',
        b'{"keys": [1], "min_frontier": "a@99999999999999999999999"}',
        b'{"keys": null}',
        b"null",
        b"\x00" * 1000,
        b"",
    ],
    ids=range(21),
)
def test_json_that_was_made_to_hurt(server: RunningServer, body: bytes) -> None:
    found = server.ask("POST", FETCH, body, content_type=JSON)
    assert found.status == 400, found.body
    assert len(found.body) < 2000


def test_the_last_of_equal_fields_counts_alike(server: RunningServer) -> None:
    found = server.ask("POST", FETCH, b'{"keys": [1], "keys": [2]}', content_type=JSON).json()
    assert found["columns"]["y"] == [2]


def test_strings_that_are_no_utf8_are_no_keys(server: RunningServer) -> None:
    good = stream(pa.record_batch({"id": ["a", "zz"]}))
    bad = good.replace(b"azz", b"a\xff\xfe")
    with server.wire() as wire:
        for _ in range(3):
            assert wire.ask("POST", TYPES, bad, content_type=ARROW).status == 400
            assert wire.ask("POST", TYPES, good, content_type=ARROW).status == 200
