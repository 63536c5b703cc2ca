"""Processes: workers that die, servers that stop, configurations that change, versions that are swapped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from tests.serving.server.publishing import publish, store_at
from tests.serving.server.running import RunningServer, request, serving
from tests.waiting import listens, wait_until

import headwater as hw
from headwater.base.frontier import Frontier

JSON = "application/json"
pytestmark = pytest.mark.long


def table_of(number: int, rows: int = 200) -> pa.Table:
    return pa.table({"id": pa.array(range(rows)), "a": pa.array([number] * rows), "b": pa.array([number] * rows)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publish(store_at(tmp_path, "t"), table_of(1), ["id"], Frontier(orders=1))
    return tmp_path


def is_gone(pid: int) -> bool:
    """Whether a process has ended; where nobody collects orphans, as in many containers, its entry stays for ever."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_a_worker_that_is_killed_is_replaced(folder: Path) -> None:
    with serving(folder, workers=2) as server:
        before = server.children()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(server.children()) - set(before)) == 3, "new processes")
        wait_until(lambda: server.fetch("t", [1]).status == 200, "an answer")


def test_clients_see_a_retry_at_most_when_workers_are_killed(folder: Path) -> None:
    with serving(folder, workers=2) as server:
        for number in range(10):
            victims = server.children()
            os.kill(victims[number % len(victims)], signal.SIGKILL)
            for _ in range(20):
                try:
                    found = server.fetch("t", [1])
                except (ConnectionError, EOFError):
                    found = server.fetch("t", [1])  # the other one answers
                assert found.json()["columns"]["a"] == [1]


def test_children_end_with_their_parent(folder: Path) -> None:
    with serving(folder, workers=2) as server:
        children = server.children()
        assert len(children) == 3
        server.process.kill()
        server.process.wait()
        wait_until(lambda: all(is_gone(pid) for pid in children), "the end of the children")
        assert not listens(server.port)


def test_requests_under_way_are_answered_before_the_end(folder: Path) -> None:
    with serving(folder) as server:
        with server.wire() as wire, server.wire() as waiting:
            body = b'{"keys": [1]}'
            wire.send(request("POST", "/v1/tables/t/fetch", body, content_type=JSON)[:-5])
            wait = json.dumps({"keys": [1], "min_frontier": "orders@2", "wait": 2}).encode()
            waiting.send(request("POST", "/v1/tables/t/fetch", wait, content_type=JSON))
            server.ask("GET", "/healthz")  # the one worker has seen what came before this
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not listens(server.port), "the end of listening")
            wire.send(body[-5:])
            found = wire.read()
            assert found.status == 200 and found.headers["connection"] == "close"
            assert waiting.read().status == 409
        assert server.process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_without_requests_ends_soon(folder: Path, number: int) -> None:
    with serving(folder, workers=2) as server, server.wire() as idle:
        assert idle.ask("GET", "/healthz").status == 200
        began = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(60) == 0
        assert time.monotonic() - began < 5


def test_a_reload_replaces_the_workers_and_loses_no_request(folder: Path) -> None:
    with serving(folder, workers=2) as server:
        before = set(server.children())
        stop, asked, failed = threading.Event(), 0, []

        def ask() -> None:
            nonlocal asked
            while not stop.is_set():
                try:
                    if server.fetch("t", [1]).status != 200:
                        failed.append("status")
                    asked += 1
                except (ConnectionError, EOFError) as error:
                    failed.append(str(error))

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: not before & set(server.children()) and len(server.children()) == 3, "other processes")
        finally:
            stop.set()
            thread.join()
        assert asked > 0 and failed == []


def has_more(server: RunningServer, before: set[int]) -> bool:
    return bool(set(server.children()) - before)


def test_a_worker_is_ready_in_less_than_a_second(folder: Path) -> None:
    with serving(folder) as server:
        (worker, follower) = server.children()
        times = []
        for _ in range(3):
            before = set(server.children())
            os.kill(worker, signal.SIGKILL)
            began = time.monotonic()
            wait_until(partial(has_more, server, before), "a new process")
            forked = time.monotonic()
            wait_until(lambda: server.fetch("t", [1]).status == 200, "an answer")
            times.append(time.monotonic() - forked)
            assert forked - began < 30
            (worker,) = set(server.children()) - {follower}
        assert min(times) < 1.0


def test_swaps_under_load_mix_nothing(folder: Path) -> None:
    """Every answer is of one version, and versions never go back on a connection to one worker."""
    versions = 40
    with serving(folder) as server:
        problems: list[Any] = []
        done = threading.Event()

        def read() -> None:
            last = 0
            with server.wire() as wire:
                while not done.is_set():
                    body = b'{"keys": [0, 7, 199]}'
                    found = wire.ask("POST", "/v1/tables/t/fetch", body, content_type=JSON)
                    if found.status != 200:
                        problems.append(found)
                        continue
                    columns = found.json()["columns"]
                    values = {*columns["a"], *columns["b"]}
                    number = int(found.headers["x-version"])
                    if values != {number} or number < last or found.headers["x-frontier"] != f"orders@{number}":
                        problems.append((values, found.headers))
                    last = number

        readers = [threading.Thread(target=read) for _ in range(3)]
        for one in readers:
            one.start()
        store = store_at(folder, "t")
        for number in range(2, versions + 1):
            publish(store, table_of(number), ["id"], Frontier(orders=number))
        body = json.dumps({"keys": [1], "min_frontier": f"orders@{versions}"}).encode()
        last = server.ask("POST", "/v1/tables/t/fetch", body, content_type=JSON)
        done.set()
        for one in readers:
            one.join()
        assert last.json()["columns"]["a"] == [versions]
        assert problems == []


def test_a_frontier_is_waited_for(folder: Path) -> None:
    with serving(folder) as server:
        body = json.dumps({"keys": [1], "min_frontier": "orders@2", "wait": 30}).encode()
        with server.wire() as wire:
            wire.send(request("POST", "/v1/tables/t/fetch", body, content_type=JSON))
            with server.wire() as other:
                assert other.ask("GET", "/healthz").status == 200
            publish(store_at(folder, "t"), table_of(2), ["id"], Frontier(orders=2))
            found = wire.read()
        assert found.status == 200 and found.headers["x-frontier"] == "orders@2"


def test_tables_come_and_go(folder: Path) -> None:
    with serving(folder) as server:
        assert server.fetch("later", [1]).status == 404
        publish(store_at(folder, "later"), table_of(5), ["id"])
        assert server.fetch("later", [1]).json()["columns"]["a"] == [5], "at once, by whoever is asked"
        store_at(folder, "later").log.remove()
        wait_until(lambda: server.fetch("later", [1]).status == 404, "the end of the table")


def test_a_first_version_is_served_at_once(tmp_path: Path) -> None:
    """Also by a worker that has looked at the table before it had one, and does not look again soon."""
    with hw.connect(tmp_path) as lake:
        lake.write("orders", [{"id": 1, "n": 5}])
        online = lake.online("fresh", "orders", key="id")
        with serving(tmp_path, poll_local_s=3600.0) as server:
            before = server.fetch("fresh", [1])
            assert before.status == 503 and before.json()["code"] == "E8208"
            online.refresh()
            assert server.fetch("fresh", [1]).json()["columns"] == {"n": [5]}


def test_a_bad_version_is_refused_and_the_one_before_serves_on(folder: Path) -> None:
    with serving(folder) as server:
        store = store_at(folder, "t")
        publish(store, table_of(2), ["id"], Frontier(orders=2))
        wait_until(lambda: server.fetch("t", [1]).json()["version"] == 2, "version 2")
        committed = store.log.read(2)
        record = json.loads(json.dumps(dict(committed.record)))
        record["layers"][0]["files"] = ["nothing.records"]
        record["superseded"] = []
        store.log.commit(2, committed.definition, record)
        wait_until(lambda: server.ask("GET", "/readyz").status == 503, "the problem")
        assert "t" in server.ask("GET", "/readyz").json()["reasons"]
        assert server.fetch("t", [1]).json()["version"] == 2
        assert b'headwater_table_error{table="t"} 1.0' in server.ask("GET", "/metrics").body
        publish(store, table_of(4), ["id"], Frontier(orders=4))
        wait_until(lambda: server.ask("GET", "/readyz").status == 200, "the end of the problem")
        assert server.fetch("t", [1]).json()["version"] == 4


def test_a_port_that_is_taken_is_an_error(folder: Path) -> None:
    with serving(folder) as server:
        words = [sys.executable, "-m", "headwater.cli", "serve", str(folder), "--port", str(server.port)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "E7011" in done.stderr
