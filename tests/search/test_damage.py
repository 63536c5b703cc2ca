"""Files of an index that are cut off, garbled or gone: the answer is right, or the error is one of ours.

A split, a cover or a record may be damaged where it is stored, and a split where this machine has unpacked it. What is stored
has checksums; a damaged split is named, searched without, and built again by the next refresh. HEADWATER_TEST_FUZZ sets how
often each kind of file is garbled.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pytest
from tests.incremental.killing import Server
from tests.object_servers import ON_SERVER
from tests.search.conftest import Place

import headwater as hw
from headwater.base import events
from headwater.base.errors import HeadwaterError
from headwater.lakehouse import Lake
from headwater.search import kept_index, split_store
from headwater.search import reader as reader_module
from headwater.search.index import SearchIndex

TRIALS = int(os.environ.get("HEADWATER_TEST_FUZZ", "3" if ON_SERVER else "8"))
_ROWS = 30
_QUERIES = ["word", '"word 7"', "w*", "*ord", "n:[3 TO 9]", "wrod~1", "NOT word"]


@pytest.fixture
def lake(place: Place, tmp_path: Path) -> Iterator[Lake]:
    with hw.settings.override(fsync=False, spill_dir=tmp_path):
        lake = place.connect()
        for begin in (0, 15):
            ids = range(begin, begin + 15)
            rows = {"n": pa.array(ids, pa.int64()), "body": [f"word {n} and word {n % 3}" for n in ids]}
            lake.write("t", pa.table(rows), mode="append")
        lake.index("ix", "t", text="body", numeric="n", hot="n", target_rows=15, refresh=True)
        yield lake


def forget() -> None:
    """What a process keeps in memory is gone."""
    kept_index._readers.clear()
    split_store._covers.clear()
    reader_module._transient.clear()
    reader_module._term_lists.clear()


def stored(index: SearchIndex, folder: str, ending: str) -> list[str]:
    """The files of an index, wherever its lake lies."""
    return sorted(e.path for e in index.store.root.list(f"_headwater/{folder}/") if e.path.endswith(ending))


def splits(index: SearchIndex, ending: str) -> list[str]:
    return stored(index, "indexes/ix/splits", ending)


def answers(index: SearchIndex) -> list[list[int]]:
    return [sorted(row["n"] for row in index.search(q, columns=["n"], k=None)) for q in _QUERIES]


def garbled(data: bytes, rng: random.Random) -> bytes:
    kind = rng.choice(["cut", "flip", "flip", "zeros", "insert", "empty", "tail"])
    at = rng.randrange(len(data))
    if kind == "cut":
        return data[:at]
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if kind == "zeros":
        return data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]
    if kind == "insert":
        return data[:at] + rng.randbytes(9) + data[at:]
    return b"" if kind == "empty" else data + rng.randbytes(100)


def notices(ask: Callable[[], Any]) -> tuple[Any, list[str]]:
    heard: list[str] = []
    stop = events.subscribe(lambda event: heard.append(event.text) if event.kind == "notice" else None)
    try:
        return ask(), heard
    finally:
        stop()


@pytest.mark.parametrize("ending", [".split", ".cover"])
@pytest.mark.parametrize("seed", range(TRIALS))
def test_what_is_stored_is_garbled(ending: str, seed: int, lake: Lake) -> None:
    rng = random.Random(f"{ending} {seed}")
    index = lake.index("ix")
    right = answers(index)
    file = PurePosixPath(rng.choice(splits(index, ending)))
    root = index.store.root
    root.put(str(file), garbled(root.get(str(file)), rng))
    split_store.forget(file.stem)
    forget()
    found, heard = notices(lambda: answers(index))
    assert found == right
    if any("cannot be used" in text for text in heard):
        assert any(file.stem in text for text in heard), "the split is named"
        assert index.details().damaged == (file.stem,)
        assert index.refresh().mode == "incremental"
        assert file.stem not in index.record.names
    assert index.details().damaged == () and index.verify().equal and answers(index) == right


@pytest.mark.parametrize("ending", [".split", ".cover"])
def test_what_is_stored_is_gone(ending: str, lake: Lake) -> None:
    index = lake.index("ix")
    right = answers(index)
    file = PurePosixPath(splits(index, ending)[0])
    index.store.root.delete(str(file))
    split_store.forget(file.stem)
    forget()
    found, heard = notices(lambda: answers(index))
    assert found == right and file.stem in heard[0]
    assert index.merge() == 2, "maintenance leaves it to the next refresh"
    assert index.refresh().mode == "incremental"
    assert index.coverage == 1.0 and index.details().damaged == () and index.verify().equal


def test_a_merge_finds_a_split_that_is_damaged(lake: Lake) -> None:
    index = lake.index("ix")
    before = set(splits(index, ".split"))
    for number in range(8):
        lake.write("t", pa.table({"n": [100 + number], "body": ["more"]}), mode="append")
        if number < 7:
            index.refresh()
    file = PurePosixPath(min(set(splits(index, ".split")) - before))
    index.store.root.put(str(file), index.store.root.get(str(file))[:-50])
    split_store.forget(file.stem)
    forget()
    _, heard = notices(index.refresh)
    assert any(file.stem in text for text in heard) and index.details().damaged == (file.stem,)
    index.refresh()
    assert index.details().damaged == () and index.verify().equal and index.coverage == 1.0


@pytest.mark.parametrize("seed", range(TRIALS))
def test_records_are_garbled(seed: int, lake: Lake) -> None:
    rng = random.Random(seed)
    index = lake.index("ix")
    right = answers(index)
    root, file = index.store.root, max(stored(index, "records/index/ix", ".json"))
    whole = root.get(file)
    root.put(file, _other_record(json.loads(whole), rng) if seed % 2 else garbled(whole, rng))
    forget()
    try:
        found = lake.index("ix")
        assert answers(found) == right or found.meant != index.meant
        found.refresh()
    except HeadwaterError as e:
        assert e.code


def _other_record(record: dict[str, Any], rng: random.Random) -> bytes:
    """A record of which one value is of another type."""
    inner = record[rng.choice(["definition", "record"])]
    place = inner["splits"][0] if "splits" in inner and rng.random() < 0.6 else inner
    place = place["fields"][0] if "fields" in place and rng.random() < 0.6 else place
    place[rng.choice(list(place))] = rng.choice([None, 7, -1, "../../x", [], {}, [None], 1e300, True])
    return json.dumps(record).encode()


@pytest.mark.long
def test_copies_in_the_cache_are_garbled(lake: Lake, place: Place, tmp_path: Path) -> None:
    """Whatever the library makes of it, the process ends in order, with an answer or an error of ours."""
    server = Server("tests.search.damage_server")
    for seed in range(TRIALS):
        rng = random.Random(seed)
        forget()  # what is damaged is not kept, and fetched again
        assert answers(lake.index("ix"))
        files = sorted(f for f in (tmp_path / "headwater-splits").glob("*/*") if not f.name.startswith("."))
        file, said = rng.choice(files), tmp_path / f"said-{seed}"
        whole = file.read_bytes()
        if not whole:
            continue
        file.write_bytes(garbled(whole, rng))
        assert server.live(lake=place.url, options=place.options, folder=str(tmp_path), said=str(said)) == 0, (
            f"{file.name}, {seed}"
        )
        assert said.read_text().startswith(("error E", "answer [[")), f"{file.name}, {seed}: {said.read_text()[:200]}"
        if file.exists():
            file.write_bytes(whole)
    server.close()


def test_a_copy_that_cannot_be_opened_is_fetched_again(lake: Lake, tmp_path: Path) -> None:
    right = answers(lake.index("ix"))
    for kind in ("fast", "idx", "term", "pos", "fieldnorm", "store"):
        for file in (tmp_path / "headwater-splits").glob(f"*/*.{kind}"):
            file.unlink()
            file.write_bytes(b"")
        forget()
        found, heard = notices(lambda: answers(lake.index("ix")))
        assert found == right, kind
        assert lake.index("ix").details().damaged == (), "what is stored is sound"
        del heard


def test_the_cache_may_be_smaller_than_what_is_open(lake: Lake) -> None:
    right = answers(lake.index("ix"))
    with hw.settings.override(search_cache_bytes=0):
        split_store.evict()
        forget()
        index = lake.index("ix")
        assert answers(index) == right
        split_store.evict()
        assert answers(index) == right
        assert index.search("word", columns=["n"], k=None).to_arrow().num_rows == _ROWS


@pytest.mark.parametrize("kind", ["cut", "zeros", "empty"])
def test_hot_columns_that_cannot_be_read_come_from_the_table(kind: str, lake: Lake, tmp_path: Path) -> None:
    right = answers(lake.index("ix"))
    forget()
    for file in (tmp_path / "headwater-splits").glob("*/hot.arrow"):
        whole = file.read_bytes()
        file.unlink()
        file.write_bytes({"cut": whole[: len(whole) // 2], "zeros": bytes(len(whole)), "empty": b""}[kind])
    assert answers(lake.index("ix")) == right
    forget()
    assert answers(lake.index("ix")) == right and lake.index("ix").details().damaged == ()
