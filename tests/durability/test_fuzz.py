"""Damage of any kind, in any file of a table: a typed error or an answer, never another exception, never a hang.

Bytes are flipped, cut off and inserted in each kind of file, and values of the log's JSON are replaced by values of
other types. HEADWATER_TEST_FUZZ sets how often (for each kind of file).
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base import settings
from headwater.base.errors import HeadwaterError
from headwater.lake import snapshot

TRIALS = int(os.environ.get("HEADWATER_TEST_FUZZ", "8"))
JUNK: list[Any] = [
    None,
    True,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "{",
    [],
    [1],
    {},
    {"a": 1},
    "../../etc/passwd",
    "\udc80",
    "1e999",
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with partitions, vectors inline and in a file, a feed, a checkpoint and commits after it."""
    folder = tmp_path_factory.mktemp("fuzz") / "lake"
    rows = pa.table({"id": range(40), "p": [f"p{i % 2}" for i in range(40)], "x": [i / 3 for i in range(40)]})
    t = hw.connect(folder).write("t", rows, partition_by=["p"], properties={"delta.enableChangeDataFeed": "true"})
    t.delete("id = 3")
    with settings.override(small_vector_bytes=0):
        t.delete("id IN (4, 5)")
    t.checkpoint()
    t.update({"x": "x + 1"}, where="id = 8")
    t.append(rows.slice(0, 2))
    return folder


def flip(data: bytearray, dice: random.Random) -> None:
    for _ in range(dice.randint(1, 4)):
        data[dice.randrange(len(data))] = dice.randrange(256)


def cut(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data)) :]


def insert(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    data[at:at] = dice.randbytes(dice.randint(1, 9))


def retype(data: bytearray, dice: random.Random) -> None:
    """Put a value of another type somewhere into one line of JSON."""
    lines = bytes(data).decode().splitlines()
    number = dice.randrange(len(lines))
    action = json.loads(lines[number])
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in list(items):
            places.append((value, key))
            walk(inner)

    walk(action)
    holder, key = dice.choice(places)
    if isinstance(holder, dict) and dice.random() < 0.3:
        del holder[key]
    else:
        holder[key] = dice.choice(JUNK)
    lines[number] = json.dumps(action)
    data[:] = "\n".join(lines).encode("utf-8", "surrogatepass")


def use(folder: Path) -> None:
    """Read in every way, then write."""
    t = hw.connect(folder).table("t")
    for call in (
        t.to_arrow,
        t.count,
        t.history,
        t.detail,
        lambda: t.to_arrow(["x"], where="id > 20 AND p = 'p1'"),
        lambda: t.at(version=2).to_arrow(),
        lambda: t.changes(after=0),
        lambda: t.at(timestamp="2100-01-01"),
        lambda: t.vacuum(dry_run=True),
        lambda: t.update({"x": "x + 1"}, where="id < 3"),
        lambda: t.delete("id = 20"),
        lambda: t.merge([{"id": 1, "p": "p1", "x": 0.0}], on=["id"]).when_matched_update_all().execute(),
        lambda: t.restore(version=1),
        t.optimize,
        t.checkpoint,
    ):
        try:
            call()
        except HeadwaterError as e:
            assert str(e) and e.code


KINDS: dict[str, tuple[str, list[Callable[[bytearray, random.Random], None]]]] = {
    "commit": ("_delta_log/*.json", [flip, cut, insert, retype, retype, retype]),
    "checkpoint": ("_delta_log/*.parquet", [flip, cut, insert]),
    "hint": ("_delta_log/_last_checkpoint", [flip, cut, insert, retype]),
    "data": ("p=*/*.parquet", [flip, cut, insert]),
    "vector": ("*.bin", [flip, cut, insert]),
    "feed": ("_change_data/*/*.parquet", [flip, cut, insert]),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_damage(kind: str, template: Path, tmp_path: Path) -> None:
    pattern, ways = KINDS[kind]
    for trial in range(TRIALS):
        dice = random.Random(f"{kind} {trial}")
        folder = tmp_path / f"{trial}"
        shutil.copytree(template, folder)
        file = dice.choice(sorted((folder / "t").glob(pattern)))
        data = bytearray(file.read_bytes())
        way = dice.choice(ways)
        way(data, dice)
        file.write_bytes(data)
        try:
            use(folder)
        except Exception as e:
            e.add_note(f"{kind} {trial}: {way.__name__} of {file.relative_to(folder)}")
            raise
        snapshot._held.clear()
        shutil.rmtree(folder)
