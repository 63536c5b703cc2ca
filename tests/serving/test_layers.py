"""Overlays, merges and compactions against a dict: whatever happened, each key has its newest row."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.amounts import everyday
from tests.serving.tables import facts_of

from headwater.base.errors import CorruptionError, InputError
from headwater.base.storage import open_storage
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, stored_schema
from headwater.serving.layers import Layers
from headwater.serving.merging import compacted, needs_compaction, overlaid, replace_layers
from headwater.serving.record import LayerEntry, OnlineRecord
from headwater.serving.record_file import RecordFile
from headwater.serving.store import OnlineStore
from headwater.serving.version import TableVersion

SCHEMA = pa.schema(
    [
        pa.field("k", pa.string(), nullable=False),
        ("n", pa.int32()),
        ("s", pa.string()),
        ("v", pa.list_(pa.float32())),
        ("rare", pa.string()),
        ("rarer", pa.list_(pa.int64())),
    ]
)


def row(rng: random.Random, key: str) -> dict[str, Any]:
    return {
        "k": key,
        "n": rng.choice([None, rng.randint(-5, 5)]),
        "s": rng.choice([None, "", "short", "rather longer than a slot", "日本" * rng.randint(1, 9)]),
        "v": rng.choice([None, [], [1.0], [None, 2.0, 3.5]]),
        "rare": "a value that is seldom there" if rng.random() < 0.02 else None,
        "rarer": [1, None, 3] if rng.random() < 0.02 else None,
    }


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


class Model:
    """A table of layers, and a dict that should have the same rows."""

    def __init__(self, folder: Path, rng: random.Random, *, parts: int, rows: int) -> None:
        self.rng = rng
        self.store = OnlineStore(open_storage(folder), "t")
        made = [row(rng, self.key(n)) for n in range(rows)]
        self.want = {one["k"]: one for one in made}
        first = batch(list(self.want.values()))
        layout = layout_of(stored_schema(SCHEMA, ["k"]), ["k"], [first], ordered=False)
        assert rows < 1_000 or layout.sparse_word >= 0, "columns that are almost always null are sparse"
        written = build_layer([first], Shape(layout, new_seed(), parts), lambda part: self.store.new_file(1, part))
        self.record = OnlineRecord(layers=(LayerEntry.of(written),), rows=rows)

    def key(self, number: int) -> str:
        return ["", "k", "ключ "][number % 3] + str(number) + "x" * (number % 7) * 9

    @property
    def layers(self) -> Layers:
        return self.store.layers(self.record)

    def change(self, keys: int) -> None:
        rng = self.rng
        upserts = [row(rng, self.key(n)) for n in rng.sample(range(2 * keys), rng.randint(0, min(40, 2 * keys)))]
        gone = rng.sample(sorted(self.want), min(len(self.want), rng.randint(0, 20)))
        gone = [k for k in gone if all(k != one["k"] for one in upserts)]
        layers = self.layers
        stack = overlaid(self.store, self.record, layers, [batch(upserts)], layers.codec.keys(gone), 2)
        self.record = OnlineRecord(layers=stack)
        for one in upserts:
            self.want[one["k"]] = one
        for k in gone:
            del self.want[k]

    def compact(self, keys: int) -> None:
        """Compact, with changes between the beginning and the end of it."""
        before = self.record
        base = compacted(self.store, self.store.layers(before), 3)
        for _ in range(self.rng.randint(0, 3)):
            self.change(keys)
        layers = replace_layers(self.record.layers, before.layers, base)
        assert layers is not None and layers[-1] == base
        self.record = OnlineRecord(layers=layers)

    def check(self, keys: int) -> None:
        version = TableVersion(facts_of(len(self.want)), self.layers)
        asked = [self.key(n) for n in self.rng.sample(range(2 * keys + 20), keys // 2)]
        found = version.fetch(asked).batch()
        found.validate(full=True)
        want = [self.want.get(k) for k in asked]
        assert found["_found"].to_pylist() == [one is not None for one in want]
        for name in SCHEMA.names[1:]:
            assert found[name].to_pylist() == [None if one is None else one[name] for one in want]
        rows = version.read().read_all().to_pylist()
        assert len(rows) == len(self.want)
        assert {one["k"]: one for one in rows} == self.want


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("seed", range(everyday(3, soak=40)))
def test_random_histories(seed: int, parts: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    keys = rng.choice([5, 60, 1_500])
    model = Model(tmp_path, rng, parts=parts, rows=keys)
    model.check(keys)
    for _ in range(everyday(12, soak=60)):
        if rng.random() < 0.2:
            model.compact(keys)
        else:
            model.change(keys)
        assert len(model.record.layers) <= 12
        model.check(keys)


def test_a_thousand_small_overlays_stay_few(tmp_path: Path) -> None:
    model = Model(tmp_path, random.Random(1), parts=1, rows=200)
    most = 0
    for _ in range(everyday(150, soak=1_000)):
        model.change(200)
        most = max(most, len(model.record.layers))
        if needs_compaction(model.record):
            model.compact(200)
    assert most <= 9
    model.check(200)


def test_a_layer_of_another_table_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    one, other = (Model(tmp_path / n, random.Random(2), parts=1, rows=10) for n in "ab")
    with pytest.raises(CorruptionError, match="does not belong"):
        Layers([other.layers.files[0], one.layers.files[0]])


def test_a_key_that_occurs_twice_names_it(tmp_path: Path) -> None:
    layout = layout_of(stored_schema(SCHEMA, ["k"]), ["k"], [], ordered=False)
    rng = random.Random(3)
    rows = [
        row(rng, key) for key in ("a", "a long key, longer than what fits", "b", "a long key, longer than what fits")
    ]
    with pytest.raises(InputError, match="1 key occurs more than once, such as k='a long key, longer than"):
        build_layer([batch(rows)], Shape(layout, 7), lambda _: str(tmp_path / "f"))
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("place", ["header", "description", "records", "heap", "index", "end"])
def test_a_damaged_file_is_an_error_and_never_a_crash(place: str, tmp_path: Path) -> None:
    rng = random.Random(4)
    model = Model(tmp_path, rng, parts=1, rows=1_200)
    file = model.layers.files[0][0]
    raw = bytearray(Path(file.path).read_bytes())
    spans = {name: (one.at, one.at + one.bytes) for name, one in file.sections.items()}
    spans |= {"header": (0, 32), "description": (len(raw) - 300, len(raw)), "end": (len(raw) - 1, len(raw))}
    begin, end = spans[place]
    seen = set()
    for _ in range(everyday(60, soak=2_000)):
        bad = bytearray(raw[: rng.randrange(begin, len(raw))] if place == "end" else raw)
        if place != "end":
            for at in (rng.randrange(begin, end) for _ in range(rng.choice([1, 8, 200]))):
                bad[at] = rng.randrange(256)
        path = tmp_path / "bad.records"
        path.write_bytes(bad)
        try:
            layers = Layers([[RecordFile(str(path))]])
            for name in file.sections:
                if place == name and bad != raw:
                    with pytest.raises(CorruptionError):
                        layers.files[0][0].check()
            version = TableVersion(facts_of(0), layers)
            version.fetch([model.key(n) for n in range(1_300)])
            seen.add("answered")
        except CorruptionError as e:
            assert "bad.records" in str(e) and e.hint
            seen.add("refused")
    assert seen <= {"answered", "refused"}
    if place in ("header", "description", "end"):
        assert "refused" in seen


def test_many_threads_fetch_while_versions_change(tmp_path: Path) -> None:
    import threading

    model = Model(tmp_path, random.Random(5), parts=1, rows=300)
    for one in model.want.values():
        one["n"] = 0
    asked = sorted(model.want)
    versions: list[TableVersion] = []
    for number in range(8):
        rows = [{**one, "n": number} for one in model.want.values()]
        layers = model.layers
        stack = overlaid(model.store, model.record, layers, [batch(rows)], None, 2)
        model.record = OnlineRecord(layers=stack)
        versions.append(TableVersion(facts_of(300), model.layers))
    current = [versions[0]]
    torn: list[object] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            numbers = set(current[0].fetch(asked, ["n"]).batch()["n"].to_pylist())
            if len(numbers) != 1:
                torn.append(numbers)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(everyday(200, soak=5_000)):
        current[0] = versions[turn % len(versions)]
        current[0].fetch(asked[:5])
    stop.set()
    for thread in threads:
        thread.join()
    assert not torn


def test_parts_divide_the_keys(tmp_path: Path) -> None:
    model = Model(tmp_path, random.Random(6), parts=4, rows=1_000)
    rows = [one.rows for one in model.layers.files[-1]]
    assert sum(rows) == 1_000 and min(rows) > 150
    assert np.unique(model.layers.table[:, 2]).size == 4


def test_the_hash_of_a_key_is_a_part_of_the_format() -> None:
    """Files of this version have it: whoever changes the hash makes another version of the file."""
    from headwater.kernels.arrays import read_only
    from headwater.kernels.online_find import hash_keys

    keys = [b"", b"a", b"abcdefg", b"abcdefgh", b"item_1234567", b"x" * 40, bytes(range(256))]
    data, hashes = np.frombuffer(b"".join(keys), np.uint8), np.empty(len(keys), np.uint64)
    hash_keys(read_only(data), read_only(np.cumsum([0, *map(len, keys)])), 12345, hashes)
    assert [hex(one) for one in hashes.tolist()] == [
        "0x17d2abfbf90baef9",
        "0x308fc97631156fc3",
        "0xfe90487ae4ed962c",
        "0xde742e8609b33de5",
        "0x1ac86d07c9d357b1",
        "0x2edf096ce26ffd69",
        "0x42457eefb4a74a56",
    ]
