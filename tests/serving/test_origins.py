"""Keys of rows that a deletion vector took: from the table's own base, whatever happened to rows, files and layers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import CorruptionError, HeadwaterError
from headwater.derived import upkeep
from headwater.lakehouse import Lake
from headwater.serving.origins import KeptRecords, Origins
from headwater.serving.record_file import RecordFile

ROWS = 2_000


def made(lake: Lake, begin: int, rows: int = ROWS) -> pa.Table:
    """Keys of two columns, one of them too long for its slot."""
    numbers = range(begin, begin + rows)
    names = [f"the quite long name of the customer with the number {n}" for n in numbers]
    return pa.table(
        {"name": names, "day": pa.array([n % 7 for n in numbers], pa.int32()), "v": [float(n) for n in numbers]}
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = hw.connect(tmp_path / "lake")
    table = lake.write("t", made(lake, 0))
    table.append(made(lake, ROWS))
    return lake


def data_files(lake: Lake, name: str = "t") -> list[Path]:
    folder = Path(lake.location.removeprefix("file://")) / name
    return sorted(p for p in folder.rglob("*.parquet") if "_delta_log" not in p.parts)


def hidden(files: list[Path]) -> None:
    for file in files:
        file.rename(file.with_suffix(".hidden"))


def shown(files: list[Path]) -> None:
    for file in files:
        file.with_suffix(".hidden").rename(file)


@pytest.mark.parametrize("compacted", [False, True])
def test_an_update_and_a_deletion_open_no_file_that_the_base_was_made_of(lake: Lake, compacted: bool) -> None:
    online = lake.online("o", "t", key=["name", "day"], refresh=True)
    table, old = lake.table("t"), data_files(lake)
    if compacted:
        table.update({"v": "v + 1"}, where="day = 3 AND v < 500")
        online.refresh()
        assert online.compact() and len(online.record.layers) == 1
    table.update({"v": "-v"}, where="day = 5 AND v > 100 AND v < 3000")
    table.delete("day = 6 AND v > 1000")
    hidden(old)
    try:
        report = online.refresh()
    finally:
        shown(old)
    assert report.mode == "incremental" and not report.reason.startswith("its changes"), report
    assert online.verify().equal


def test_rows_that_were_moved_are_read_where_they_are(lake: Lake) -> None:
    online = lake.online("o", "t", key=["name", "day"], refresh=True)
    table = lake.table("t")
    table.optimize()
    table.delete("day = 6 AND v > 1000")
    assert online.refresh().mode == "incremental"
    assert online.verify().equal


def test_a_second_row_for_a_key_is_still_refused(lake: Lake) -> None:
    """As many rows go as come with keys that are there, and yet one key has two rows then."""
    online = lake.online("o", "t", key=["name", "day"], refresh=True)
    table = lake.table("t")
    table.delete("v = 10.0")
    table.append(made(lake, 11, 1))
    with pytest.raises(HeadwaterError) as refused:
        online.refresh()
    assert refused.value.code == "E1704"


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_of_a_source_without_a_feed(lake: Lake, seed: int) -> None:
    rng = random.Random(seed)
    online, table = lake.online("o", "t", key=["name", "day"], refresh=True), lake.table("t")
    newest, modes = 2 * ROWS, []
    for _ in range(30):
        for _ in range(rng.randint(1, 3)):
            low = rng.uniform(0, newest)
            where = f"v > {low} AND v < {low + rng.choice([3, 40, 400])}"
            what = rng.choices(["update", "delete", "append", "merge", "optimize", "restore"], [4, 4, 2, 3, 1, 1])[0]
            if what == "update":
                table.update({"v": "v + 0.25"}, where=where)
            elif what == "delete":
                table.delete(where)
            elif what == "append":
                table.append(made(lake, newest, 50))
                newest += 50
            elif what == "merge":
                begin = rng.randrange(newest)
                lake.write("fixes", made(lake, begin, 30), mode="overwrite")
                lake.sql(
                    "MERGE INTO t USING fixes s ON t.name = s.name AND t.day = s.day "
                    "WHEN MATCHED THEN UPDATE SET v = s.v + 0.5 WHEN NOT MATCHED THEN INSERT *"
                )
                newest = max(newest, begin + 30)
            elif what == "optimize":
                table.optimize()
            else:
                table.restore(version=max(0, table.version - rng.randint(1, 3)))
        modes.append(online.refresh().mode)
        if rng.random() < 0.2:
            online.compact()
        assert online.verify().equal
    upkeep.wait()
    assert modes.count("incremental") > 20, modes
    assert online.current.mapped.origins is not None


def test_nothing_is_left_of_the_rows_that_the_base_was_made_of(lake: Lake) -> None:
    online, table = lake.online("o", "t", key=["name", "day"], refresh=True), lake.table("t")
    for where in (None, "day = 5", "day = 4"):  # after the first of them, no record is of the files that it began with
        table.update({"v": "v + 1"}, where=where)
        assert online.refresh().mode == "incremental"
        upkeep.wait()  # which takes so many rows in by itself
        online.compact()
        assert len(online.record.layers) == 1
    table.delete("day = 6")
    assert online.refresh().mode == "incremental" and online.verify().equal


@pytest.mark.parametrize("options", [{"parts": 3}, {"order_by": "v"}], ids=["parts", "order"])
def test_several_parts_and_an_order_have_no_origins(lake: Lake, options: dict[str, Any]) -> None:
    online = lake.online("o", "t", key=["name", "day"], refresh=True, **options)
    assert online.current.mapped.origins is None
    lake.table("t").delete("day = 6 AND v > 1000")
    assert online.refresh().mode == "incremental" and online.verify().equal


def test_damage_is_noticed_before_it_is_believed(lake: Lake) -> None:
    online = lake.online("o", "t", key=["name", "day"], refresh=True)
    (name,) = online.record.layers[-1].files
    path = Path(online.store.folder.folder) / name
    section = RecordFile(str(path)).sections["origins"]
    with path.open("r+b") as file:
        file.seek(section.at + section.bytes // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    found = RecordFile(str(path))
    with pytest.raises(CorruptionError, match="origins"):
        _ = found.origins
    with pytest.raises(CorruptionError, match="origins"):
        found.check()


@pytest.mark.parametrize("seed", range(20))
def test_runs_against_a_plain_list(seed: int) -> None:
    """Each record with its file and position in a list, and a random choice of them copied, twice."""
    rng = np.random.default_rng(seed)
    paths = ("a", "b", "c")
    rows = [
        (path, n) for path in paths for n in np.flatnonzero(rng.random(300) < rng.choice([0.3, 0.95, 1.0])).tolist()
    ]
    file = np.array([paths.index(path) for path, _ in rows])
    start = np.array([n for _, n in rows])
    ones = np.ones(len(rows), np.int64)
    found = Origins.of_runs(paths, file, start, ones, np.arange(len(rows)))
    records = {row: number for number, row in enumerate(rows)}
    for _ in range(2):
        found = Origins.read(found.to_buffer())
        for path in (*paths, "d"):
            for n in range(302):
                numbers = found.find(path, np.array([n]))
                assert (None if numbers is None else numbers.tolist()) == (
                    [records[path, n]] if (path, n) in records else None
                )
        kept = KeptRecords()
        chosen = np.flatnonzero(rng.random(max(records.values()) + 1) < 0.8)
        first = int(rng.integers(0, 50))
        for chunk in np.array_split(chosen, 4):
            kept.note(chunk, first)
            becomes = dict(zip(chunk.tolist(), range(first, first + len(chunk)), strict=True))
            records |= {row: -1 - becomes[number] for row, number in records.items() if number in becomes}
            first += len(chunk)
        records = {row: -1 - number for row, number in records.items() if number < 0}
        found = kept.origins(found)
    assert KeptRecords().origins(found).find("a", np.array([0])) is None
