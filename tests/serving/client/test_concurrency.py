"""Many callers at once: threads, tasks, forks, interrupts; no answer goes to the wrong one, and no connection is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.serving.client.wire_server import Wire, WireServer, answer_body, answers, hash_of, ok, serving
from tests.waiting import PATIENCE_S, wait_until

import headwater as hw
from headwater.base.errors import ServerError


def is_for(answer: hw.Answer, keys: list[str]) -> bool:
    return bool(answer.to_numpy().tolist() == [[float(len(key)), float(hash_of(key))] for key in keys])


def keys_of(number: int) -> list[str]:
    return [f"key_{number}_{n}" for n in range(number % 50 + 1)]


def test_threads_share_a_client() -> None:
    with serving(answers) as server, hw.Client(server.url, pool=3, timeout=PATIENCE_S) as client:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda n: is_for(client.fetch("spend", keys_of(n)), keys_of(n)), range(400)))
        assert all(found) and server.most_at_once <= 3 and len(server.requests) == 400


def test_tasks_share_a_client() -> None:
    async def run(url: str) -> list[bool]:
        async with hw.AsyncClient(url, pool=3, timeout=PATIENCE_S) as client:

            async def one(number: int) -> bool:
                return is_for(await client.fetch("spend", keys_of(number)), keys_of(number))

            return list(await asyncio.gather(*(one(n) for n in range(400))))

    with serving(answers) as server:
        assert all(asyncio.run(run(server.url))) and server.most_at_once <= 3


def test_an_async_client_outlives_its_event_loop() -> None:
    with serving(answers) as server:
        client = hw.AsyncClient(server.url)

        async def use() -> bool:
            found = is_for(await client.fetch("spend", ["a"]), ["a"])
            client._pool.clear()
            await asyncio.sleep(0)
            return found

        assert asyncio.run(use()) and asyncio.run(use())


def test_more_callers_than_connections() -> None:
    release = threading.Event()

    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            release.wait(PATIENCE_S)
            wire.send(ok(answer_body(request)))

    with serving(serve) as server, hw.Client(server.url, pool=1, timeout=PATIENCE_S) as client:
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(client.fetch, "spend", ["a"])
            wait_until(lambda: server.requests, "the first request")
            client._timeout_s = 0.1
            with pytest.raises(ServerError, match=r"E1769.*all 1 connections were in use"):
                client.fetch("spend", ["b"])
            client._timeout_s = PATIENCE_S
            release.set()
            assert is_for(first.result(), ["a"])
        assert is_for(client.fetch("spend", ["c"]), ["c"]) and server.connections == 1


def test_more_tasks_than_connections() -> None:
    release = threading.Event()

    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            release.wait(PATIENCE_S)
            wire.send(ok(answer_body(request)))

    async def run(server: WireServer) -> bool:
        async with hw.AsyncClient(server.url, pool=1, timeout=PATIENCE_S) as client:
            first = asyncio.create_task(client.fetch("spend", ["a"]))
            while not server.requests:
                await asyncio.sleep(0.001)
            client._timeout_s = 0.1
            with pytest.raises(ServerError, match="E1769"):
                await client.fetch("spend", ["b"])
            client._timeout_s = PATIENCE_S
            waiting = [asyncio.create_task(client.fetch("spend", [key])) for key in "cd"]
            await asyncio.sleep(0)
            waiting[0].cancel()
            release.set()
            assert is_for(await first, ["a"]) and is_for(await waiting[1], ["d"])
            return is_for(await client.fetch("spend", ["e"]), ["e"])

    with serving(serve) as server:
        assert asyncio.run(run(server)) and server.connections == 1


def test_a_task_that_is_cancelled_takes_its_connection_with_it() -> None:
    release = threading.Event()

    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            if len(server.requests) == 1:
                release.wait(PATIENCE_S)
            wire.send(ok(answer_body(request)))

    async def run(server: WireServer) -> bool:
        async with hw.AsyncClient(server.url, pool=1, timeout=PATIENCE_S) as client:
            task = asyncio.create_task(client.fetch("spend", ["a"]))
            while not server.requests:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            release.set()
            return is_for(await client.fetch("spend", ["bbb"]), ["bbb"])

    with serving(serve) as server:
        assert asyncio.run(run(server)) and server.connections == 2


class Interrupted(Exception):
    pass


def test_an_interrupt_takes_its_connection_with_it() -> None:
    release = threading.Event()

    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            if len(server.requests) == 2:
                os.kill(os.getpid(), signal.SIGUSR1)
                release.wait(PATIENCE_S)
            wire.send(ok(answer_body(request)))

    def interrupt(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with serving(serve) as server, hw.Client(server.url, timeout=PATIENCE_S) as client:
            client.fetch("spend", ["a"])
            with pytest.raises(Interrupted):
                client.fetch("spend", ["bb"])
            release.set()
            assert is_for(client.fetch("spend", ["ccc"]), ["ccc"]) and server.connections == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


FORKING = """
import os, sys
import headwater as hw
client = hw.Client(sys.argv[1])
assert client.fetch("spend", ["a"]).to_numpy()[0, 0] == 1
child = os.fork()
for number in range(1, 50):
    key = ("c" if child == 0 else "parent") * number
    assert client.fetch("spend", [key]).to_numpy()[0, 0] == len(key)
if child == 0:
    os._exit(0)
_, status = os.waitpid(child, 0)
sys.exit(status)
"""


def test_a_fork_has_connections_of_its_own() -> None:
    with serving(answers) as server:
        done = subprocess.run([sys.executable, "-c", FORKING, server.url], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert server.connections == 2 and len(server.requests) == 99


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, with its key, that nobody trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    made = tmp_path_factory.mktemp("tls") / "server.pem"
    options = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", f"{made}.key", "-out", str(made)]
    subprocess.run(["openssl", "req", *options, *names, *files], check=True, capture_output=True)
    return made


def test_tls(certificate: Path) -> None:
    ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ours.load_cert_chain(certificate, f"{certificate}.key")
    trusting = ssl.create_default_context(cafile=certificate)

    async def awaited(url: str) -> list[bool]:
        async with hw.AsyncClient(url, tls=trusting) as client:
            return [is_for(await client.fetch("spend", keys_of(n)), keys_of(n)) for n in range(20)]

    with serving(answers, ours) as server:
        with hw.Client(server.url, tls=trusting) as client:
            assert all(is_for(client.fetch("spend", keys_of(n)), keys_of(n)) for n in range(20))
            assert server.connections == 1
            client.write  # noqa: B018
        assert all(asyncio.run(awaited(server.url))) and server.connections == 2
        with hw.Client(server.url, retries=0) as stranger, pytest.raises(ServerError, match=r"E1764.*certificate"):
            stranger.fetch("spend", ["a"])


def test_tls_in_time(certificate: Path) -> None:
    ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ours.load_cert_chain(certificate, f"{certificate}.key")

    def serve(server: WireServer, wire: Wire) -> None:
        server.next(wire)
        server.next(wire)

    with (
        serving(serve, ours) as server,
        hw.Client(server.url, tls=ssl.create_default_context(cafile=certificate), timeout=0.5) as client,
        pytest.raises(ServerError, match="E1766"),
    ):
        client.fetch("spend", ["a"])
