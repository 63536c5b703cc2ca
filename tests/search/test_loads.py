"""Splits that are not on this machine are fetched several at a time, and never more than is allowed; the oldest are evicted."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake
from headwater.search import kept_index, split_store
from headwater.search.answers import forget_answers
from headwater.search.index import SearchIndex
from headwater.search.split_store import SplitStore

_SPLITS = 7


@pytest.fixture
def index(lake: Lake, tmp_path: Path) -> SearchIndex:
    with hw.settings.override(spill_dir=tmp_path):
        for n in range(_SPLITS):
            lake.write("t", pa.table({"id": [n], "body": [f"word number{n}"]}), mode="append")
        return lake.index("ix", "t", text="body", target_rows=1, refresh=True)


def _forget(index: SearchIndex) -> None:
    kept_index._readers.clear()
    split_store._covers.clear()
    forget_answers()
    for name in index.record.names:
        split_store.forget(name)


@pytest.mark.parametrize("most", [1, 3, 8])
def test_so_many_at_a_time(most: int, index: SearchIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = [0]
    seen: list[int] = []
    guard, real = threading.Lock(), SplitStore._unpack

    def slow(store: SplitStore, name: str, to: str) -> None:
        with guard:
            running[0] += 1
            seen.append(running[0])
        time.sleep(0.05)
        real(store, name, to)
        with guard:
            running[0] -= 1

    monkeypatch.setattr(SplitStore, "_unpack", slow)
    with hw.settings.override(spill_dir=tmp_path, search_loads=most):
        _forget(index)
        assert index.count("word") == _SPLITS
        assert len(seen) == _SPLITS, "each is fetched once"
        assert max(seen) == most if most < _SPLITS else 3 < max(seen) <= most
        assert index.reader().folders[0].startswith(str(tmp_path)), "threads have the settings of the caller"


def test_several_who_search_keep_to_the_limit_together(
    index: SearchIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most, guard, real = [0], [0], threading.Lock(), SplitStore._unpack

    def slow(store: SplitStore, name: str, to: str) -> None:
        with guard:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        real(store, name, to)
        with guard:
            running[0] -= 1

    monkeypatch.setattr(SplitStore, "_unpack", slow)
    found: list[int] = []

    def ask() -> None:
        with hw.settings.override(spill_dir=tmp_path, search_loads=2):
            found.append(index.count("word"))

    with hw.settings.override(spill_dir=tmp_path):
        _forget(index)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [_SPLITS] * 4 and most[0] == 2


def test_the_ones_that_were_not_used_for_the_longest_time_go_first(index: SearchIndex, tmp_path: Path) -> None:
    with hw.settings.override(spill_dir=tmp_path):
        index.prewarm()
        folder = split_store.cache_folder()
        names = sorted(os.listdir(folder))
        assert len(names) == _SPLITS
        for age, name in enumerate(names):
            os.utime(os.path.join(folder, name, ".used"), (1_000 + age, 1_000 + age))
        sizes = {name: split_store._size(os.path.join(folder, name)) for name in names}
        limit = sum(sizes[name] for name in names[-3:])
        assert split_store.evict(limit) == limit
        assert sorted(os.listdir(folder)) == names[-3:]
        os.utime(os.path.join(folder, names[-3], ".used"), (9_000, 9_000))
        split_store.evict(limit - 1)
        assert names[-3] in os.listdir(folder) and names[-2] not in os.listdir(folder)
        _ = index.count("number1 OR number2")
        left: Any = index.search("word", columns=["id"], k=None)
        assert len(left) == _SPLITS
