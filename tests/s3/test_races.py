"""Put-if-absent is what a commit rests on: of many racing writers exactly one wins, on a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.durability.writers import COUNTER, SCHEMA

from headwater.base.storage import ObjectExistsError
from headwater.lakehouse import Lake
from headwater.testing.s3_server import S3Server

pytestmark = pytest.mark.s3
ROOT = Path(__file__).parents[2]


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


def test_eight_processes_lose_nothing(lake: Lake, s3: S3Server) -> None:
    t = lake.table("t").create(SCHEMA)
    t.append([{"id": COUNTER, "owner": -1, "v": 0}])
    environ = {**os.environ, "HEADWATER_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    work = []
    for owner in range(1, 9):
        arguments = json.dumps({"location": t.location, "owner": owner, "commits": 5, "options": s3.options})
        command = [sys.executable, "-m", "tests.durability.writers", "write", arguments]
        work.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environ))
    expected: dict[int, int] = {}
    counted = 0
    for process in work:
        out, err = process.communicate()
        assert process.returncode == 0, err.decode()[-3000:]
        result = json.loads(out)
        expected |= {int(k): v for k, v in result["model"].items()}
        counted += result["counted"]
    found = t.to_arrow()
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected | {COUNTER: counted}
    assert t.version == 1 + 8 * 5
