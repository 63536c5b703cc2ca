"""Arrow Flight: what is served equals what is stored, to those who may read it, and nothing else can be done."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight
from tests.serving.server.conftest import all_types
from tests.serving.server.publishing import publish, store_at
from tests.waiting import wait_until

from headwater.base.errors import AccessError
from headwater.base.frontier import Frontier
from headwater.base.storage import LocalStorage
from headwater.serving.server.backing import LakeTables
from headwater.serving.server.flight import FlightTables
from headwater.serving.server.options import Limits, ServerOptions, Token

ITEMS = pa.table({"id": [f"item_{n}" for n in range(500)], "x": np.arange(500) / 4, "n": np.arange(500)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("flight")
    publish(store_at(made, "items"), ITEMS, ["id"], Frontier(orders=42))
    publish(store_at(made, "types"), all_types(), ["id"])
    publish(
        store_at(made, "pairs"), pa.table({"a": ["x", "x", "y"], "b": [1, 2, 1], "n": [1.0, 2.0, None]}), ["a", "b"]
    )
    return made


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[str]:
    server = FlightTables(LakeTables(LocalStorage(str(folder))), ServerOptions(port=0, **options))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield f"grpc://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[flight.FlightClient]:
    with serving(folder) as location, flight.connect(location) as found:
        yield found


def ticket(**request: Any) -> flight.Ticket:
    return flight.Ticket(json.dumps(request).encode())


def test_rows_by_key(client: flight.FlightClient) -> None:
    found = client.do_get(ticket(table="items", keys=["item_3", "nobody", "item_499"], columns=["n", "x"])).read_all()
    assert found.to_pydict() == {"n": [3, None, 499], "x": [0.75, None, 124.75], "_found": [True, False, True]}
    assert found.schema.metadata == {b"headwater.version": b"items@1", b"headwater.frontier": b"orders@42"}
    dropped = client.do_get(
        ticket(table="items", keys=["nobody", "item_7"], columns=["n"], missing="drop", status=True)
    )
    assert dropped.read_all().to_pydict() == {"n": [7], "_status": [0], "_idx": [1]}
    pairs = client.do_get(ticket(table="pairs", keys=[["x", 2], ["z", 1]])).read_all()
    assert pairs.to_pydict() == {"n": [2.0, None], "_found": [True, False]}
    types = client.do_get(ticket(table="types", keys=["a", "b", "c"])).read_all()
    assert [str(row) for row in types.drop_columns("_found").to_pylist()] == [
        str(row) for row in all_types().drop_columns("id").to_pylist()
    ]


def test_all_rows(client: flight.FlightClient) -> None:
    whole = client.do_get(ticket(table="items")).read_all()
    assert whole.sort_by("n").equals(ITEMS)
    assert client.do_get(ticket(table="items", columns=["n"])).read_all().sort_by("n").equals(ITEMS.select(["n"]))


def test_what_there_is(client: flight.FlightClient) -> None:
    listed = {info.descriptor.path[0]: info for info in client.list_flights()}
    assert set(listed) == {b"items", b"pairs", b"types"} and listed[b"items"].total_records == 500
    assert [info.descriptor.path[0] for info in client.list_flights(b"it")] == [b"items"]
    info = client.get_flight_info(flight.FlightDescriptor.for_path("items"))
    assert info.schema.names == ["id", "x", "n"] and info.total_records == 500
    assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 500
    command = flight.FlightDescriptor.for_command(ticket(table="items", keys=["item_1"], columns=["n"]).ticket)
    info = client.get_flight_info(command)
    assert info.schema.names == ["n", "_found"]
    assert client.do_get(info.endpoints[0].ticket).read_all()["n"].to_pylist() == [1]
    assert client.get_schema(flight.FlightDescriptor.for_path("pairs")).schema.names == ["a", "b", "n"]


WRONG: list[tuple[Any, type[Exception], str]] = [
    ({"table": "itms", "keys": []}, pa.ArrowKeyError, "itms"),
    ({"table": "items", "keys": ["a"], "columns": ["y"]}, pa.ArrowKeyError, "E1002"),
    ({"table": "items", "columns": ["y"]}, pa.ArrowKeyError, "E1002"),
    ({"table": "items", "keys": "a"}, pa.ArrowInvalid, "keys"),
    ({"table": "items", "kees": ["a"]}, pa.ArrowInvalid, "kees"),
    ({"table": "items", "keys": ["a"], "missing": "keep"}, pa.ArrowInvalid, "missing"),
    ({"table": "pairs", "keys": ["a"]}, pa.ArrowInvalid, "each key is an array"),
    ({"table": 3}, pa.ArrowInvalid, "table"),
    ({"table": "../items"}, pa.ArrowKeyError, "items"),
    ([], pa.ArrowInvalid, "no object"),
    ({"table": "items", "keys": ["a"] * 100_001}, pa.ArrowInvalid, "E8202"),
]


@pytest.mark.parametrize(("request_", "kind", "words"), WRONG)
def test_tickets_that_are_wrong(client: flight.FlightClient, request_: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        client.do_get(flight.Ticket(json.dumps(request_).encode())).read_all()


def test_other_bytes_and_paths(client: flight.FlightClient, folder: Path) -> None:
    for body in (b"", b"\xff\xfe", b"{", b"[" * 5000):
        with pytest.raises(pa.ArrowInvalid):
            client.do_get(flight.Ticket(body)).read_all()
    with pytest.raises(pa.ArrowInvalid):
        client.get_flight_info(flight.FlightDescriptor.for_path("a", "b"))
    with pytest.raises(pa.ArrowKeyError):
        client.get_flight_info(flight.FlightDescriptor.for_path("nothing"))
    with (
        serving(folder, limits=Limits(max_body_bytes=100)) as location,
        flight.connect(location) as strict,
        pytest.raises(pa.ArrowInvalid, match="E8201"),
    ):
        strict.do_get(ticket(table="items", keys=["item_1"] * 50)).read_all()


def test_nothing_can_be_written(client: flight.FlightClient) -> None:
    def put() -> None:
        writer, _ = client.do_put(flight.FlightDescriptor.for_path("items"), ITEMS.schema)
        writer.write_table(ITEMS)
        writer.close()

    with pytest.raises(NotImplementedError):
        put()
    with pytest.raises(NotImplementedError):
        list(client.do_action(flight.Action("drop", b"items")))


def test_a_new_version_is_served(tmp_path: Path) -> None:
    store = store_at(tmp_path, "items")
    publish(store, pa.table({"id": [1], "x": [1.0]}), ["id"])
    with serving(tmp_path) as location, flight.connect(location) as client:
        for number in range(1, 5):
            assert client.do_get(ticket(table="items", keys=[1])).read_all()["x"].to_pylist() == [float(number)]
            publish(store, pa.table({"id": [1], "x": [number + 1.0]}), ["id"])


def test_tokens_and_their_scopes(folder: Path) -> None:
    def hashed(text: str) -> str:
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    tokens = (
        Token.parse("all", hashed("secret"), ["read"]),
        Token.parse("some", hashed("glance"), ["read:pairs", "write"]),
    )
    asked = ticket(table="items", keys=["item_1"], columns=["n"])

    def options(token: str) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])

    with serving(folder, tokens=tokens) as location, flight.connect(location) as client:
        assert client.do_get(asked, options("secret")).read_all()["n"].to_pylist() == [1]
        for refused in (flight.FlightCallOptions(), options("wrong"), options("")):
            with pytest.raises(flight.FlightUnauthenticatedError, match=r"E810[12]"):
                client.do_get(asked, refused).read_all()
            with pytest.raises(flight.FlightUnauthenticatedError):
                list(client.list_flights(options=refused))
        with pytest.raises(flight.FlightUnauthorizedError, match="E8103"):
            client.do_get(asked, options("glance")).read_all()
        assert [info.descriptor.path[0] for info in client.list_flights(options=options("glance"))] == [b"pairs"]


def test_a_server_that_others_can_reach_needs_tokens(folder: Path) -> None:
    with pytest.raises(AccessError, match="E8105"):
        FlightTables(LakeTables(LocalStorage(str(folder))), ServerOptions(host="0.0.0.0", port=0))


@pytest.mark.long
def test_headwater_serve_answers_flight_beside_http(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "headwater.cli", "serve", str(folder), "--port", "0", "--no-refresh"]
    server = subprocess.Popen([*command, "--flight-port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        with server.stdout, flight.connect(f"grpc://127.0.0.1:{port}") as found:
            assert server.stdout.readline().startswith("http://127.0.0.1:")
            found.wait_for_available(timeout=30)
            rows = found.do_get(ticket(table="items", keys=["item_3"])).read_all()
            assert rows.to_pylist() == [{"x": 0.75, "n": 3, "_found": True}]
    finally:
        server.terminate()
        assert server.wait() == 0
    with socket.socket() as gone:
        wait_until(lambda: gone.connect_ex(("127.0.0.1", port)) != 0, "nobody to listen any more")
