"""The kernel that answers a whole request against the path that reads, finds and copies in separate steps."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.amounts import everyday
from tests.serving.tables import facts_of

from headwater.base.errors import HeadwaterError
from headwater.base.storage import open_storage
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, stored_schema
from headwater.serving.client.key_frame import key_body
from headwater.serving.frame_reading import FrameReader
from headwater.serving.layers import Layers
from headwater.serving.merging import overlaid
from headwater.serving.projection import FetchOptions, Projection
from headwater.serving.record import LayerEntry, OnlineRecord
from headwater.serving.server.request_keys import KeyReader
from headwater.serving.store import OnlineStore
from headwater.serving.version import TableVersion

VALUES = [
    ("f", pa.float32()),
    ("d", pa.float64()),
    ("n", pa.int16()),
    ("b", pa.bool_()),
    ("t", pa.timestamp("us")),
    ("m", pa.decimal128(20, 3)),
    ("rare", pa.int64()),
    ("s", pa.string()),
    ("raw", pa.binary()),
    ("v", pa.list_(pa.float32())),
    ("w", pa.list_(pa.int16())),
    ("seldom", pa.string()),
]


def row(rng: random.Random, key: Any) -> dict[str, Any]:
    values = {
        "f": rng.uniform(-9, 9),
        "d": rng.uniform(-9, 9),
        "n": rng.randint(-300, 300),
        "b": rng.random() < 0.5,
        "t": rng.randint(0, 10**15),
        "m": None,
        "rare": 7 if rng.random() < 0.01 else None,
        "s": "é" * rng.choice([0, 1, 6, 7, 40]),
        "raw": bytes(rng.randrange(20)),
        "v": [rng.choice([0.5, None]) for _ in range(rng.choice([0, 1, 8, 9]))],
        "w": [1, 2, 3],
        "seldom": "x" * 20 if rng.random() < 0.01 else None,
    }
    has_nulls = rng.random() < 0.3
    return {"k": key} | {name: None if has_nulls and rng.random() < 0.4 else v for name, v in values.items()}


def version_of(folder: Path, rng: random.Random, kind: pa.DataType, keys: list[Any], parts: int) -> TableVersion:
    """A base of two thirds of the keys, and an overlay that changes, adds and deletes some."""
    schema = pa.schema([pa.field("k", kind, nullable=False), *VALUES])
    base = [row(rng, key) for key in keys[: 2 * len(keys) // 3]]
    upserts = [row(rng, key) for key in rng.sample(keys, len(keys) // 10)]
    kept = {one["k"] for one in upserts}
    gone = [one["k"] for one in rng.sample(base, len(base) // 10) if one["k"] not in kept]
    store = OnlineStore(open_storage(folder), "t")
    first = pa.RecordBatch.from_pylist(base, schema)
    layout = layout_of(stored_schema(schema, ["k"]), ["k"], [first], ordered=False)
    written = build_layer([first], Shape(layout, new_seed(), parts), lambda part: store.new_file(1, part))
    record = OnlineRecord(layers=(LayerEntry.of(written),), rows=len(base))
    layers = store.layers(record)
    changes = [pa.RecordBatch.from_pylist(upserts, schema)]
    stack = overlaid(store, record, layers, changes, layers.codec.keys(gone), 2)
    return TableVersion(facts_of(len(base)), store.layers(OnlineRecord(layers=stack)))


def by_steps(version: TableVersion, body: bytes, columns: tuple[str, ...] | None, options: FetchOptions) -> Any:
    """The bytes and the misses of an answer, or the code of an error; by a reader that remembers nothing."""
    try:
        frame = version.fetch(KeyReader(version, FrameReader()).read(body), columns, options)
    except HeadwaterError as error:
        return error.code
    return bytes(frame.buffer), frame.missing


def at_once(layers: Layers, projection: Projection, reader: KeyReader, body: bytes) -> Any:
    places = reader.places(body)
    frame = None if places is None else projection.answer(layers, body, places.request, places.rows)
    return None if frame is None else (bytes(frame.buffer), frame.missing)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.int64(), pa.int16()], ids=str)
def test_one_call_answers_what_the_steps_do(kind: pa.DataType, parts: int, tmp_path: Path) -> None:
    rng = random.Random(f"{kind}{parts}")
    keys: list[Any] = list(range(1_500))
    if not pa.types.is_integer(kind):
        keys = [["", "k", "key "][n % 3] + str(n) + "x" * (n % 5) * 9 for n in keys]
    if pa.types.is_binary(kind):
        keys = [key.encode() + b"\xff" for key in keys]
    version = version_of(tmp_path, rng, kind, keys, parts)
    reader = KeyReader(version, FrameReader())
    for _ in range(everyday(60, soak=2_000)):
        asked = rng.sample(keys, rng.choice([1, 7, 8, 64, 333]))
        columns = rng.choice([None, tuple(rng.sample([name for name, _ in VALUES], 3))])
        options = FetchOptions(found=rng.random() < 0.5)
        projection = version.fixed_projection(columns, options)
        assert projection is not None
        body = bytes(key_body(pa.array(asked, kind)))
        for _ in range(2):  # it learns the schema first, then the places
            reader.read(body)
        found = at_once(version.mapped, projection, reader, body)
        assert found == by_steps(version, body, columns, options)
        frame = projection.answer(version.mapped, body, (places := reader.places(body)).request, places.rows)  # type: ignore[union-attr]
        assert frame is not None and frame.batch().equals(version.fetch(asked, columns, options).batch())
        frame.batch().validate(full=True)


def test_bodies_that_are_damaged_are_never_answered_otherwise(tmp_path: Path) -> None:
    rng = random.Random(5)
    keys = [f"key {n}" + "y" * (n % 11) for n in range(600)]
    version = version_of(tmp_path, rng, pa.string(), keys, 1)
    projection = version.fixed_projection(None, FetchOptions())
    assert projection is not None
    reader = KeyReader(version, FrameReader())
    left, same = 0, 0
    for _ in range(everyday(400, soak=20_000)):
        body = bytearray(key_body(rng.sample(keys, 20)))
        for _ in range(2):
            reader.read(bytes(body))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(body) // 2, len(body))  # most of which are offsets and data
            body[at] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        sent = bytes(body)
        found = at_once(version.mapped, projection, reader, sent)
        if found is None:
            left += 1
        else:
            same += 1
            assert found == by_steps(version, sent, None, FetchOptions())
    assert left > 50 and same > 50, "both happen"


def test_what_needs_more_than_values_is_left_to_the_steps(tmp_path: Path) -> None:
    version = version_of(tmp_path, random.Random(6), pa.string(), [str(n) for n in range(30)], 1)
    assert version.fixed_projection(None, FetchOptions(status=True)) is None
    assert version.fixed_projection(None, FetchOptions(missing="drop")) is None
    assert version.fixed_projection(("f",), FetchOptions()) is not None
