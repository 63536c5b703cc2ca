"""A lake on object storage: workers follow it from afar, fetch files once per machine, check them, and refuse bad ones.

The server has a cache of its own, as on another machine than the one that publishes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.serving.server.running import RunningServer
from tests.waiting import PATIENCE_S, wait_until

import headwater as hw
from headwater.lakehouse import Lake
from headwater.serving.record import LayerEntry
from headwater.serving.record_file import RecordFile
from headwater.testing.s3_server import S3Server

pytestmark = [pytest.mark.long, pytest.mark.s3]
ROWS = 2_000
KEYS = [0, 7, ROWS - 1]


@pytest.fixture
def lake(s3: S3Server) -> Lake:
    lake = hw.connect(s3.url("lake"), storage_options=s3.options)
    lake.write("t", pa.table({"id": range(ROWS), "v": [0] * ROWS}))
    lake.online("o", "t", key="id", refresh=True)
    return lake


@contextmanager
def served(lake: Lake, s3: S3Server, cache: Path) -> Iterator[RunningServer]:
    command = [sys.executable, "-m", "headwater.cli", "serve", lake.location, "--port", "0", "--workers", "2"]
    environment = {**os.environ, **s3.options, "HEADWATER_SPILL_DIR": str(cache)}
    cache.mkdir()
    with subprocess.Popen([*command, "--no-refresh"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            server = RunningServer(process, process.stdout.readline().strip())
            wait_until(lambda: server.ask("GET", "/readyz").status == 200, "readiness")
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def all_answer(server: RunningServer, value: int, version: int) -> bool:
    """Whether ten connections, which go to either worker, are all answered so."""
    for _ in range(10):
        found = server.fetch("o", [*KEYS, -1])
        if found.status != 200 or found.headers["x-frontier"] != f"t@{version}":
            return False
        assert found.json()["columns"]["v"] == [*[value] * len(KEYS), None]
    return True


def files(cache: Path) -> list[Path]:
    return list(cache.rglob("*.records"))


def test_a_correction_reaches_the_workers(lake: Lake, s3: S3Server, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with served(lake, s3, cache) as server:
        assert all_answer(server, 0, 0) and len(files(cache)) == 1
        lake.table("t").update({"v": "1"}, where="id IN (0, 7) OR id > 1000")
        assert lake.online("o").refresh().mode == "incremental"
        wait_until(lambda: all_answer(server, 1, 1), "the new answer")
        assert len(files(cache)) == 2, "only the overlay was fetched, once for both workers"
        assert server.fetch("o", [8]).json()["columns"]["v"] == [0]


def test_a_worker_begins_again_without_its_cache(lake: Lake, s3: S3Server, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with served(lake, s3, cache) as server:
        before = server.children()
        for file in files(cache):
            file.unlink()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(server.children()) - set(before)) == len(before), "new processes")
        wait_until(lambda: server.ask("GET", "/readyz").status == 200, "readiness")
        wait_until(lambda: all_answer(server, 0, 0), "answers of both")
        assert len(files(cache)) == 1


def test_a_broken_version_is_refused_and_the_one_before_serves_on(lake: Lake, s3: S3Server, tmp_path: Path) -> None:
    online, cache = lake.online("o"), tmp_path / "cache"
    with served(lake, s3, cache) as server:
        wait_until(lambda: all_answer(server, 0, 0), "answers of both")
        publish_damaged(lake)
        wait_until(lambda: server.ask("GET", "/readyz").status == 503, "the refusal")
        reasons = server.ask("GET", "/readyz").json()["reasons"]
        assert "[E" in reasons["o"] and "check sum of its records" in reasons["o"]
        assert all_answer(server, 0, 0), "what was served before"
        (good,) = files(cache)
        RecordFile(str(good)).check()

        before = server.children()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(server.children()) - set(before)) == len(before), "new processes")
        wait_until(lambda: all_answer(server, 0, 0), "answers of workers that never had a better version")
        assert server.ask("GET", "/readyz").status == 503

        lake.table("t").update({"v": "2"})
        assert online.refresh(full=True).mode == "full"
        wait_until(lambda: all_answer(server, 2, 1), "the next version")
        wait_until(lambda: server.ask("GET", "/readyz").status == 200, "readiness")


def publish_damaged(lake: Lake) -> None:
    """Commit a version whose base has one wrong byte among its records."""
    store = lake.online("o").store
    committed = store.log.newest()
    assert committed is not None
    record = store.record(committed)
    (layer,) = record.layers
    (name,) = layer.files
    data = bytearray(store.root.get(f"{store.folder.path}/{name}"))
    data[RecordFile(str(Path(store.folder.folder) / name)).sections["records"].at + 5] ^= 1
    damaged = Path(store.new_file(committed.number + 1))
    damaged.write_bytes(data)
    store.upload([damaged.name])
    layers = (LayerEntry((damaged.name,), layer.rows, layer.tombstones, layer.bytes),)
    made = replace(record, layers=layers, superseded=(name,))
    store.log.commit(committed.number, committed.definition, made.to_json())
