"""What a server refuses: who may not ask, what must not be asked, and bytes that mean two things."""

from __future__ import annotations

import ast
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.server.running import ARROW, RunningServer, Wire, request, serving

import headwater.serving.server
from headwater.serving.server.access import hash_token

READER, WRITER, TEAM, ADMIN = (
    "reader-token-0123456789",
    "writer-token-0123456789",
    "team-token-0123456789",
    "admin-token-012345678",
)
KEYS = b'{"keys": [1]}'
FETCH = "/v1/tables/numbers/fetch"
JSON = "application/json"


@pytest.fixture(scope="module")
def guarded(tables: Path) -> Iterator[RunningServer]:
    """A server with tokens, and small limits."""
    tokens = [
        ("reader", hash_token(READER), ["read:numbers"]),
        ("writer", hash_token(WRITER), ["write"]),
        ("team", hash_token(TEAM), ["read:s*", "read:risk"]),
        ("admin", hash_token(ADMIN), ["read", "admin"]),
    ]
    limits = {"max_keys": 100, "max_body_bytes": 100_000, "max_header_bytes": 4096, "request_timeout_s": 1.0}
    with serving(tables, tokens=tokens, limits=limits) as running:
        yield running


@pytest.fixture(params=["below", "through"])
def either(request: pytest.FixtureRequest) -> str:
    """Which way a fetch takes, below ASGI or through it: a percent sign in the path leads to the application."""
    return str(request.param)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "content_type": JSON}


def path_of(either: str) -> str:
    return FETCH if either == "below" else FETCH.replace("numbers", "numb%65rs")


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_a_token_opens(guarded: RunningServer, either: str) -> None:
    assert guarded.ask("POST", path_of(either), KEYS, **bearer(READER)).status == 200


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"authorization": "Bearer wrong-token-0123456789"},
        {"authorization": f"Bearer {READER}x"},
        {"authorization": f"Bearer {READER[:-1]}"},
        {"authorization": f"Basic {READER}"},
        {"authorization": READER},
        {"authorization": "Bearer "},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {READER.upper()}"},
        {"authorization": f"Bearer {hash_token(READER)}"},
        {"x_authorization": f"Bearer {READER}"},
        {"cookie": f"token={READER}"},
    ],
)
def test_without_a_known_token_nothing_is_told(guarded: RunningServer, either: str, header: dict[str, str]) -> None:
    found = guarded.ask("POST", path_of(either), KEYS, content_type=JSON, **header)
    assert found.status == 401
    assert found.headers["www-authenticate"].startswith("Bearer")
    assert "numbers" not in found.body.decode()


def test_a_token_in_the_query_is_no_token(guarded: RunningServer) -> None:
    found = guarded.ask("POST", f"{FETCH}?token={READER}", KEYS, content_type=JSON)
    assert found.status in (400, 401) and READER not in found.body.decode()


@pytest.mark.parametrize("table", ["spend", "nothing"])
def test_a_table_out_of_scope_is_refused_whether_it_is_there_or_not(guarded: RunningServer, table: str) -> None:
    for path in (f"/v1/tables/{table}/fetch", f"/api/v1/table/{table}/fetch"):
        assert guarded.ask("POST", path, KEYS, **bearer(READER)).status == 403
    assert guarded.ask("GET", f"/v1/tables/{table}", None, **bearer(READER)).status == 403


def test_scopes_are_about_what_is_done(guarded: RunningServer) -> None:
    assert guarded.ask("POST", FETCH, KEYS, **bearer(WRITER)).status == 403
    assert guarded.ask("PUT", "/v1/tables/numbers/rows", b"[]", **bearer(READER)).status == 403
    assert guarded.ask("DELETE", "/v1/tables/numbers/rows", KEYS, **bearer(READER)).status == 403
    assert guarded.ask("PUT", "/v1/tables/fresh", b"{}", **bearer(WRITER)).status == 403
    assert guarded.ask("DELETE", "/v1/tables/numbers", None, **bearer(WRITER)).status == 403


def test_scopes_by_prefix(guarded: RunningServer) -> None:
    body = b'{"keys": ["bob"]}'
    assert guarded.ask("POST", "/v1/tables/spend/fetch", body, **bearer(TEAM)).status == 200
    assert guarded.ask("POST", "/v1/tables/numbers/fetch", KEYS, **bearer(TEAM)).status == 403


def test_several_tables_need_a_scope_for_each(guarded: RunningServer) -> None:
    both = json.dumps({"keys": {"customer": ["bob"]}, "tables": ["spend", "risk"]}).encode()
    assert guarded.ask("POST", "/v1/fetch", both, **bearer(TEAM)).status == 200
    other = json.dumps({"keys": {"customer": ["bob"]}, "tables": ["spend", "numbers"]}).encode()
    assert guarded.ask("POST", "/v1/fetch", other, **bearer(TEAM)).status == 403


def test_lists_show_what_may_be_read(guarded: RunningServer) -> None:
    found = guarded.ask("GET", "/v1/tables", None, **bearer(TEAM)).json()["tables"]
    assert [one["name"] for one in found] == ["risk", "spend"]
    assert list(guarded.ask("GET", "/api/v1/table", None, **bearer(READER)).json()) == ["numbers"]
    assert guarded.ask("GET", "/v1/tables").status == 401


def test_the_frontier_of_a_list_is_that_of_what_may_be_read(guarded: RunningServer) -> None:
    assert guarded.ask("GET", "/v1/tables", None, **bearer(TEAM)).headers["x-frontier"] == "cards@2 orders@7"
    assert "x-frontier" not in guarded.ask("GET", "/v1/tables").headers


def test_what_is_open_tells_no_names(guarded: RunningServer) -> None:
    for path in ("/healthz", "/readyz", "/health"):
        found = guarded.ask("GET", path)
        assert found.status == 200 and b"numbers" not in found.body, path
    assert guarded.ask("GET", "/openapi.json").status == guarded.ask("GET", "/docs").status == 200
    assert guarded.ask("GET", "/metrics").status == 401
    assert guarded.ask("GET", "/metrics", None, **bearer(READER)).status == 403
    assert guarded.ask("GET", "/metrics", None, **bearer(ADMIN)).status == 200


def test_what_is_remembered_of_a_head_opens_no_door(guarded: RunningServer) -> None:
    with guarded.wire() as wire:
        for _ in range(3):
            assert wire.ask("POST", FETCH, KEYS, **bearer(READER)).status == 200
        assert wire.ask("POST", FETCH, KEYS, **bearer("reader-token-9876543210")).status == 401
        assert wire.ask("POST", FETCH, KEYS, content_type=JSON).status == 401
        assert wire.ask("POST", FETCH.replace("numbers", "spend"), KEYS, **bearer(READER)).status == 403
        assert wire.ask("POST", FETCH, KEYS, **bearer(READER)).status == 200


@pytest.mark.parametrize("name", ["authorization", "content-type", "host", "x-request-id"])
def test_headers_that_decide_are_there_once(guarded: RunningServer, name: str) -> None:
    lines = {"host": "127.0.0.1", "authorization": f"Bearer {READER}", "content-type": JSON, "x-request-id": "a"}
    text = "".join(f"{n}: {v}\r\n" for n, v in lines.items()) + f"{name}: {lines[name]}\r\n"
    with guarded.wire() as wire:
        wire.send(f"POST {FETCH} HTTP/1.1\r\n{text}content-length: {len(KEYS)}\r\n\r\n".encode() + KEYS)
        assert wire.read().status == 400


def test_a_trailer_is_no_header(guarded: RunningServer) -> None:
    head = f"POST {FETCH} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n"
    body = f"{len(KEYS):x}\r\n{KEYS.decode()}\r\n0\r\nauthorization: Bearer {READER}\r\n\r\n"
    with guarded.wire() as wire:
        wire.send((head + body).encode())
        assert wire.read().status == 401


def test_a_server_that_others_reach_needs_tokens() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headwater.cli", "serve", ".", "--host", "0.0.0.0", "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "E8105" in done.stderr


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_a_foreign_name_for_this_machine_is_refused(server: RunningServer, host: str) -> None:
    assert server.ask("POST", FETCH, KEYS, content_type=JSON, host=host).status == 403
    assert server.ask("GET", "/v1/tables", host=host).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:80", "[::1]:80", "LOCALHOST"])
def test_this_machine_by_its_own_names(server: RunningServer, host: str) -> None:
    assert server.ask("POST", FETCH, KEYS, content_type=JSON, host=host).status == 200


# -- names -------------------------------------------------------------------------------------------------------------

NAMES = [
    "..",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2fetc",
    "..%5c..",
    "a%00b",
    "a%0d%0ab",
    "%ff%fe",
    "a%20b",
    "1a",
    "a..b",
    ".a",
    "a.",
    "a.b.c.d",
    "_headwater",
    "_HEADWATER.x",
    "%c3%a4",
    "a" * 201,
    "%252e%252e",
    "~",
    "-x",
    "a;b",
    "a%3fb",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_no_table_has_touch_no_path(server: RunningServer, name: str) -> None:
    for method, path, body in (
        ("POST", f"/v1/tables/{name}/fetch", KEYS),
        ("POST", f"/api/v1/table/{name}/fetch", KEYS),
        ("GET", f"/v1/tables/{name}/schema", None),
        ("PUT", f"/v1/tables/{name}", b'{"key": "a", "columns": {"a": "int64"}}'),
        ("DELETE", f"/v1/tables/{name}", None),
        ("PUT", f"/v1/tables/{name}/rows", b"[]"),
    ):
        found = server.ask(method, path, body, content_type=JSON)
        assert found.status in (400, 404), (method, path, found)
        assert "passwd" not in found.json()["message"] or found.status in (400, 404)


def test_names_in_bodies_are_checked_too(server: RunningServer) -> None:
    body = json.dumps({"keys": [1], "tables": {"../../etc/passwd": None}}).encode()
    assert server.ask("POST", "/v1/fetch", body, content_type=JSON).status == 400


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_body_that_is_too_long_is_not_read(guarded: RunningServer, either: str) -> None:
    with guarded.wire() as wire:
        head = request("POST", path_of(either), None, **bearer(READER), content_length="100001")
        wire.send(head)  # and no body
        assert wire.read().status == 413
        assert wire.is_closed()


def test_chunks_that_amount_to_too_much(guarded: RunningServer) -> None:
    with guarded.wire() as wire:
        wire.send(request("POST", FETCH, None, **bearer(READER), transfer_encoding="chunked"))
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        for _ in range(7):
            wire.send(chunk)
        assert wire.read().status == 413
        assert wire.is_closed()


def test_too_many_keys(guarded: RunningServer, either: str) -> None:
    body = json.dumps({"keys": list(range(101))}).encode()
    found = guarded.ask("POST", path_of(either), body, **bearer(READER))
    assert found.status == 413 and found.json()["code"] == "E8202"
    both = json.dumps({"keys": ["a"] * 51, "tables": ["spend", "risk"]}).encode()
    assert guarded.ask("POST", "/v1/fetch", both, **bearer(TEAM)).status == 413


def test_headers_that_are_too_long(guarded: RunningServer) -> None:
    assert guarded.ask("POST", FETCH, KEYS, **bearer(READER), x_more="y" * 5000).status == 431
    many = {f"x_{n}": "y" * 40 for n in range(100)}
    assert guarded.ask("POST", FETCH, KEYS, **bearer(READER), **many).status == 431
    assert guarded.ask("GET", "/healthz?" + "x" * 5000).status == 431


def send_for_ever(wire: Wire, data: bytes) -> None:
    for _ in range(100_000):
        wire.send(data)


def test_a_header_that_never_ends(guarded: RunningServer) -> None:
    with guarded.wire() as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-more: ")
        with contextlib.suppress(ConnectionError, EOFError):  # the answer may be lost with what was not read
            send_for_ever(wire, b"y" * 1000)
            assert wire.read().status == 431


def test_trailers_that_never_end(guarded: RunningServer) -> None:
    with guarded.wire() as wire:
        wire.send(request("POST", FETCH, None, **bearer(READER), transfer_encoding="chunked") + b"0\r\n")
        with pytest.raises(ConnectionError):
            send_for_ever(wire, b"x-more: " + b"y" * 1000 + b"\r\n")


@pytest.mark.long
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"\r\n",
        b"POST",
        b"POST /v1/tables/numbers/fetch HTTP/1.1\r\nhost: x\r\n",
        request("POST", FETCH, None, **bearer(READER), content_length="50") + b'{"keys"',
        request("POST", path_of("through"), None, **bearer(READER), content_length="50") + b'{"keys"',
        request("POST", FETCH, None, **bearer(READER), transfer_encoding="chunked") + b"5\r\n{",
    ],
)
def test_requests_that_do_not_become_complete(guarded: RunningServer, begun: bytes) -> None:
    with guarded.wire() as wire:
        wire.send(begun)
        assert wire.read().status == 408
        assert wire.is_closed()


@pytest.mark.long
def test_a_byte_at_a_time_is_too_slow(guarded: RunningServer) -> None:
    whole = request("POST", FETCH, KEYS, **bearer(READER))
    with guarded.wire() as wire:
        wire.socket.settimeout(0.05)
        found = b""
        for place in range(len(whole)):
            try:
                wire.send(whole[place : place + 1])
                found = wire.socket.recv(4096)
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert found.startswith(b"HTTP/1.1 408") or found == b""


def test_more_connections_than_there_may_be(tables: Path) -> None:
    with serving(tables, limits={"max_concurrency": 3}) as small:
        wires = [small.wire() for _ in range(3)]
        assert all(one.ask("GET", "/healthz").status == 200 for one in wires)
        with small.wire() as surplus:
            found = surplus.ask("POST", FETCH, KEYS, content_type=JSON)
            assert found.status == 503 and found.headers["retry-after"] == "1"
        wires.pop().socket.close()
        for one in wires:
            assert one.ask("POST", FETCH, KEYS, content_type=JSON).status == 200
            one.socket.close()


# -- what is not there -------------------------------------------------------------------------------------------------


def test_nothing_is_unpickled(server: RunningServer) -> None:
    for media in ("application/python-pickle", "application/x-pickle", "application/octet-stream"):
        found = server.ask("POST", FETCH, b"\x80\x04.", content_type=media, accept=ARROW)
        assert found.status == 415
    folder = Path(headwater.serving.server.__file__).parent
    for file in folder.rglob("*.py"):
        names = {
            name.name.partition(".")[0]
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")])
        }
        assert not names & {"pickle", "marshal", "shelve", "dill", "cloudpickle"}, file


def test_errors_tell_no_paths_of_this_machine(server: RunningServer, tables: Path) -> None:
    for path, body in ((f"{FETCH}?columns=zz", KEYS), ("/v1/tables/nothing/fetch", KEYS), (FETCH, b"{")):
        found = server.ask("POST", path, body, content_type=JSON)
        assert found.status in (400, 404) and str(tables) not in found.body.decode()


def test_unknown_methods_and_paths(server: RunningServer) -> None:
    found = server.ask("PATCH", "/v1/tables")
    assert found.status == 405 and found.headers["allow"] == "GET, HEAD"
    assert server.ask("GET", "/v1/nothing").status == 404
    assert server.ask("GET", "/v1/tables/").status == 404
    assert server.ask("GET", FETCH).status == 405
    assert server.ask("HEAD", "/v1/tables").status == 200


def test_a_wire_is_a_wire(server: RunningServer) -> None:
    with Wire(server.port) as wire:  # many requests, one connection
        assert {wire.ask("POST", FETCH, KEYS, content_type=JSON).status for _ in range(50)} == {200}
