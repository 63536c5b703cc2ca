"""Two who refresh an index at once, by threads or by processes, and many small appends."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from tests.search.conftest import Place
from tests.search.notes import Notes

import headwater as hw
from headwater.lakehouse import Lake
from headwater.search.record import SplitEntry
from headwater.search.refreshing import choose_merges

pytestmark = pytest.mark.long

APPENDS = int(os.environ.get("HEADWATER_TEST_STEPS", "0")) * 5 or 60
_REFRESH = """
import sys, headwater as hw
index = hw.connect(sys.argv[1]).index("it")
for _ in range(5):
    index.refresh()
    index.merge()
assert index.verify().equal
"""


def test_threads_refresh_search_and_write_at_once(place: Place) -> None:
    with hw.settings.override(fsync=False):
        notes = Notes(place.url, 1, target_rows=20, options=place.options)
        notes.open("it").refresh()

        def work(number: int) -> None:
            rng = random.Random(number)
            mine = Notes(place.url, target_rows=20, options=place.options)
            for _ in range(6):
                if number % 2:
                    mine.table.append(mine.rows(rng, [1000 + number]))
                    mine.open("it").refresh()
                else:
                    index = mine.open("it")
                    found = index.search("id:*" if "id" in index.fields else "*", columns=["id"], k=None)
                    assert len(found) == found.total
                    index.merge()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        index = notes.open("it")
        index.refresh()
        assert index.verify().equal and index.coverage == 1.0
        assert len(index.search("*", k=None, columns=["id"])) == 24


def test_processes_refresh_at_once(tmp_path: Path) -> None:
    with hw.settings.override(fsync=False):
        notes = Notes(tmp_path / "lake", 1, target_rows=20)
        notes.open("it")
        path = os.pathsep.join(filter(None, sys.path))
        env = {**os.environ, "PYTHONPATH": path, "HEADWATER_FSYNC": "false"}
        command = [sys.executable, "-c", _REFRESH, str(tmp_path / "lake")]
        running = [subprocess.Popen(command, env=env) for _ in range(2)]
        rng = random.Random(1)
        for _ in range(10):
            notes.commit(rng)
        assert [one.wait() for one in running] == [0, 0]
        index = notes.open("it")
        index.refresh()
        assert index.verify().equal and index.frontier == notes.head()


def test_small_appends_leave_few_splits(lake: Lake) -> None:
    with hw.settings.override(fsync=False):
        lake.write("t", pa.table({"id": [0], "body": ["word 0"]}))
        index = lake.index("ix", "t", text="body", refresh=True)
        table, most = lake.table("t"), 0
        for number in range(1, APPENDS):
            table.append(pa.table({"id": [number], "body": [f"word {number}"]}))
            index.refresh()
            most = max(most, index.details().splits)
        assert most <= 16, "eight of a size become one"
        assert index.count("word") == APPENDS and index.coverage == 1.0
        assert len(index.store.usable()) <= 2 * most


@pytest.mark.parametrize(
    ("appends", "most_rows", "target_rows"), [(1_000, 1, 10**6), (20_000, 3, 10**6), (5_000, 900, 20_000)]
)
def test_any_number_of_appends_leaves_a_number_of_splits_that_is_bounded(
    appends: int, most_rows: int, target_rows: int
) -> None:
    """What a refresh after each append would merge, without building anything."""
    rng, entries, total, rewritten = random.Random(appends), list[SplitEntry](), 0, 0
    most = 0
    for number in range(appends):
        rows = rng.randint(1, most_rows)
        entries.append(SplitEntry(f"{number}", "stamp", rows, 1, rows))
        total += rows
        for group in choose_merges(entries, {}, target_rows):
            merged = sum(one.rows for one in group)
            assert merged <= target_rows
            rewritten += merged
            entries = [one for one in entries if one not in group]
            entries.append(SplitEntry(f"{number}+{len(group)}", "stamp", merged, len(group), merged))
        full = sum(one.rows > target_rows / 8 for one in entries)
        most = max(most, len(entries) - full)
    assert sum(one.rows for one in entries) == total
    levels = math.log(min(total, target_rows), 8)
    assert most <= 8 * levels + 8, "seven of each size wait for an eighth"
    assert rewritten <= total * (levels + 2) + 64 * appends, "a row is merged once for each size, from 64 rows on"
