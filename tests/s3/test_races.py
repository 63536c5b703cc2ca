"""Put-if-absent is what a commit rests on: of many racing writers exactly one wins, on a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.durability.writers import COUNTER, SCHEMA, Writers

from headwater.base.storage import ObjectExistsError
from headwater.lakehouse import Lake
from headwater.testing.object_server import ObjectServer


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Writers]:
    made = Writers(tmp_path)
    yield made
    made.close()


def test_one_of_sixteen_threads_wins(lake: Lake) -> None:
    storage = lake.catalog.root
    for trial in range(2):  # this server lets losers wait for whole seconds
        together = threading.Barrier(16)

        def put(n: int, path: str = f"race/{trial}", start: threading.Barrier = together) -> bool:
            start.wait()
            try:
                storage.put_if_absent(path, str(n).encode())
            except ObjectExistsError:
                return False
            return True

        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(put, range(16)))
        assert sum(won) == 1
        assert storage.get(f"race/{trial}") == str(won.index(True)).encode()


def test_eight_processes_lose_nothing(lake: Lake, server: ObjectServer, writers: Writers) -> None:
    t = lake.table("t").create(SCHEMA)
    t.append([{"id": COUNTER, "owner": -1, "v": 0}])
    work = [
        writers.start("write", location=t.location, owner=owner, commits=5, options=server.options)
        for owner in range(1, 9)
    ]
    expected: dict[int, int] = {}
    counted = 0
    for result in writers.results(work):
        expected |= {int(k): v for k, v in result["model"].items()}
        counted += result["counted"]
    found = t.to_arrow()
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected | {COUNTER: counted}
    assert t.version == 1 + 8 * 5
