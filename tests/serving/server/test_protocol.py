"""The way below ASGI is really taken, by whom it should be, and leaves uvicorn's books in order."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serving.server.running import ARROW, request

from headwater.base.storage import LocalStorage
from headwater.serving.server.backing import LakeTables
from headwater.serving.server.metrics import NUMBERS, ServerMetrics
from headwater.serving.server.options import Limits, ServerOptions
from headwater.serving.server.protocol import FetchProtocol, sweep
from headwater.serving.server.service import Service
from headwater.serving.server.shared_counters import SharedCounters
from headwater.serving.server.worker import WorkerServer, uvicorn_config

JSON = "application/json"
FETCH = "/v1/tables/numbers/fetch"
KEYS = b'{"keys": [1]}'

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, WorkerServer], Awaitable[None]]


def talk(tables: Path, conversation: Talk, **options: Any) -> None:
    """Run a server in this process, on uvloop, and talk to it on one connection."""
    import uvloop

    async def main() -> None:
        metrics = ServerMetrics(SharedCounters(regions=1, tables=16, numbers=NUMBERS), 0)
        service = Service(ServerOptions(**options), LakeTables(LocalStorage(str(tables))), metrics)
        server = WorkerServer(uvicorn_config(service), service, on_ready=lambda: None)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        listener = socket.create_server(("127.0.0.1", 0))
        await server.startup([listener])
        await server.on_tick(0)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
            await conversation(reader, writer, server)
            writer.close()
            await writer.wait_closed()
        finally:
            await server.shutdown([listener])

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
    return int(head.split()[1]), await reader.readexactly(length)


def connection(server: WorkerServer) -> FetchProtocol:
    (one,) = server.server_state.connections
    assert isinstance(one, FetchProtocol)
    return one


def test_plain_fetches_are_answered_below_asgi(tables: Path) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        for number in range(1, 6):
            writer.write(request("POST", FETCH, KEYS, content_type=JSON, accept=ARROW))
            assert (await answer(reader))[0] == 200
            assert connection(server).answered == number
        assert connection(server).cycle is None, "no request reached ASGI"
        assert server.server_state.total_requests == 5
        assert len(server.service.heads.known) == 1

    talk(tables, conversation)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (FETCH, {"expect": "100-continue"}),
        (FETCH, {"transfer_encoding": "chunked"}),
        (FETCH.replace("n", "%6e", 1), {}),
        ("/v1/fetch", {}),
        (f"{FETCH}?min_frontier=orders@99&wait=0", {}),
        (f"{FETCH}?columns=%ff", {}),
    ],
)
def test_everything_else_goes_on_to_the_application(tables: Path, path: str, headers: dict[str, str]) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        chunked = "transfer_encoding" in headers
        body = b"d\r\n" + KEYS + b"\r\n0\r\n\r\n" if chunked else KEYS
        length = {} if chunked else {"content_length": str(len(KEYS))}
        writer.write(request("POST", path, None, content_type=JSON, **length, **headers) + body)
        if "expect" in headers:
            assert b"100" in await reader.readuntil(b"\r\n\r\n")
        await answer(reader)
        assert connection(server).answered == 0
        assert connection(server).cycle is not None
        assert server.server_state.total_requests == 1
        assert not server.service.heads.known

    talk(tables, conversation)


def test_large_bodies_are_computed_in_a_thread(tables: Path) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        body = json.dumps({"keys": list(range(60_000))}).encode()
        assert len(body) > 256 << 10
        writer.write(request("POST", FETCH, body, content_type=JSON, accept=ARROW))
        assert (await answer(reader))[0] == 200
        assert connection(server).answered == 0

    talk(tables, conversation)


def test_heads_that_never_come_again_are_not_kept(tables: Path) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        for number in range(5):
            writer.write(request("POST", FETCH, KEYS, content_type=JSON, x_request_id=f"r{number}"))
            assert (await answer(reader))[0] == 200
        assert not server.service.heads.known
        assert connection(server).answered == 5

    talk(tables, conversation)


def test_what_is_kept_has_an_end(tables: Path) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        for number in range(2500):
            writer.write(request("POST", FETCH, KEYS, content_type=JSON, x_more=str(number)))
            assert (await answer(reader))[0] == 200
        assert 0 < len(server.service.heads.known) <= 1024

    talk(tables, conversation)


def test_connections_without_requests_are_ended(tables: Path) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        writer.write(request("POST", FETCH, KEYS, content_type=JSON))
        await answer(reader)
        sweep(server.server_state.connections, 30.0, 60.0)
        writer.write(request("POST", FETCH, KEYS, content_type=JSON))
        assert (await answer(reader))[0] == 200, "it was not idle for so long"
        sweep(server.server_state.connections, 30.0, -1.0)
        assert await reader.read() == b""

    talk(tables, conversation)


def test_a_head_that_is_remembered_obeys_the_limits_of_its_body(tables: Path) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        for _ in range(3):
            writer.write(request("POST", FETCH, KEYS, content_type=JSON))
            assert (await answer(reader))[0] == 200
        many = b'{"keys": [1,2,3,4,5,6]}'
        for _ in range(3):
            writer.write(request("POST", FETCH, many, content_type=JSON))
            assert (await answer(reader))[0] == 413

    talk(tables, conversation, limits=Limits(max_keys=5))


def test_the_access_log_has_a_line_for_each(tables: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WorkerServer) -> None:
        for path in (FETCH, FETCH, FETCH, FETCH.replace("n", "%6e", 1)):
            writer.write(request("POST", path, KEYS, content_type=JSON))
            await answer(reader)

    with caplog.at_level("INFO", "uvicorn.access"):
        talk(tables, conversation, access_log=True)
    lines = [record.getMessage() for record in caplog.records if record.name == "uvicorn.access"]
    assert len(lines) == 4
    assert len({line.partition(" - ")[2] for line in lines}) == 1
