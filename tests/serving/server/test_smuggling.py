"""Bytes that could mean two things: what one reader takes for a body, another must not take for a request."""

from __future__ import annotations

import json

import pytest
from tests.serving.server.running import RunningServer, request

FETCH = "/v1/tables/numbers/fetch"
SLOW = "/v1/tables/numb%65rs/fetch"
JSON = "application/json"
KEYS = b'{"keys": [1]}'
HIDDEN = b"GET /v1/tables HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def head(*lines: str, path: str = FETCH) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-type: {JSON}", *lines, "", ""]).encode()


def chunked(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


AMBIGUOUS = {
    "length and chunks": head("content-length: 4", "transfer-encoding: chunked") + chunked(KEYS) + HIDDEN,
    "chunks and length": head("transfer-encoding: chunked", "content-length: 4") + chunked(KEYS) + HIDDEN,
    "two lengths": head(f"content-length: {len(KEYS)}", "content-length: 4") + KEYS + HIDDEN,
    "two equal lengths": head(f"content-length: {len(KEYS)}", f"content-length: {len(KEYS)}") + KEYS,
    "two lengths in one": head(f"content-length: {len(KEYS)}, {len(KEYS)}") + KEYS,
    "a signed length": head(f"content-length: +{len(KEYS)}") + KEYS,
    "a negative length": head("content-length: -1") + KEYS,
    "a hexadecimal length": head("content-length: 0xd") + KEYS,
    "a length with a space": head("content-length: 1 3") + KEYS,
    "a length with an underscore": head("content-length: 1_3") + KEYS,
    "a length beyond 64 bits": head("content-length: 99999999999999999999") + KEYS,
    "an empty length": head("content-length:") + KEYS,
    "a space before the colon": head(f"content-length : {len(KEYS)}") + KEYS,
    "a tab before the colon": head("transfer-encoding\t: chunked") + chunked(KEYS),
    "a folded header": head("x-folded: a\r\n content-length: 4", f"content-length: {len(KEYS)}") + KEYS,
    "a folded length": head(f"content-length:\r\n {len(KEYS)}") + KEYS,
    "bare line feeds": head(f"content-length: {len(KEYS)}").replace(b"\r\n", b"\n") + KEYS,
    "one bare line feed": head(f"x-a: b\ncontent-length: {len(KEYS)}") + KEYS,
    "a bare carriage return": head(f"x-a: b\rcontent-length: {len(KEYS)}") + KEYS,
    "a null in a header": head("x-a: b\x00c", f"content-length: {len(KEYS)}") + KEYS,
    "a name with a space": head("x a: b", f"content-length: {len(KEYS)}") + KEYS,
    "no name": head(": b", f"content-length: {len(KEYS)}") + KEYS,
    "chunks that are not last": head("transfer-encoding: chunked, identity") + chunked(KEYS),
    "chunks with another name": head("transfer-encoding: xchunked") + chunked(KEYS),
    "a bad chunk size": head("transfer-encoding: chunked") + b"zz\r\n" + KEYS + b"\r\n0\r\n\r\n",
    "a signed chunk size": head("transfer-encoding: chunked") + b"+d\r\n" + KEYS + b"\r\n0\r\n\r\n",
    "a chunk size with a prefix": head("transfer-encoding: chunked") + b"0xd\r\n" + KEYS + b"\r\n0\r\n\r\n",
    "a chunk size beyond 64 bits": head("transfer-encoding: chunked") + b"f" * 17 + b"\r\n" + KEYS,
    "a chunk that is longer than it says": head("transfer-encoding: chunked") + b"5\r\n" + KEYS + b"\r\n0\r\n\r\n",
    "chunks with bare line feeds": head("transfer-encoding: chunked") + b"d\n" + KEYS + b"\n0\n\n",
    "another version": b"POST " + FETCH.encode() + b" HTTP/1.11\r\nhost: x\r\n\r\n",
    "no version": b"POST " + FETCH.encode() + b"\r\nhost: x\r\n\r\n",
    "no host": b"POST " + FETCH.encode() + b" HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a space in the path": b"POST /v1/tables/a b/fetch HTTP/1.1\r\nhost: x\r\n\r\n",
    "an upgrade with a body": head("connection: upgrade", "upgrade: x", f"content-length: {len(HIDDEN)}") + HIDDEN,
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous_is_refused_and_ends_the_connection(name: str, server: RunningServer) -> None:
    with server.wire() as wire:
        wire.send(AMBIGUOUS[name])
        found = wire.read()
        assert found.status == 400, found
        assert found.headers["connection"] == "close"
        assert found.json()["code"] == "E1747"
        assert wire.is_closed(), "nothing behind it was answered"


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_the_same_behind_a_good_request(name: str, server: RunningServer) -> None:
    """Also where the connection has answered before, and what it has seen is remembered."""
    good = request("POST", FETCH, KEYS, content_type=JSON)
    with server.wire() as wire:
        for _ in range(3):
            wire.send(good)
            assert wire.read().status == 200
        wire.send(good + AMBIGUOUS[name])
        assert wire.read().status == 200
        assert wire.read().status == 400
        assert wire.is_closed()


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_the_same_behind_a_request_of_the_application(name: str, server: RunningServer) -> None:
    """The good request is still being answered when the bad one is found."""
    with server.wire() as wire:
        wire.send(request("GET", "/v1/tables") + AMBIGUOUS[name])
        assert wire.read().status == 200
        assert wire.read().status == 400
        assert wire.is_closed()


def test_a_body_that_looks_like_a_request_is_a_body(server: RunningServer) -> None:
    for path in (FETCH, SLOW):
        with server.wire() as wire:
            wire.send(request("POST", path, HIDDEN, content_type=JSON) + request("GET", "/healthz"))
            assert wire.read().status == 400  # it is no JSON
            assert wire.read().body == b'{"status":"ok"}'


def test_more_than_the_length_is_the_next_request(server: RunningServer) -> None:
    with server.wire() as wire:
        for _ in range(2):
            wire.send(request("POST", FETCH, KEYS, content_type=JSON))
            assert wire.read().status == 200
        wire.send(request("POST", FETCH, KEYS, content_type=JSON) + HIDDEN)
        assert [wire.read().status, wire.read().status] == [200, 200]
        wire.send(request("POST", FETCH, KEYS, content_type=JSON) + b"x")
        assert wire.read().status == 200
        wire.send(b"GET / HTTP/1.1\r\n\r\n")
        assert wire.read().status == 400


def test_a_request_in_every_two_pieces(server: RunningServer) -> None:
    """Wherever a request is cut, what was remembered of it does not confuse the parser."""
    whole = request("POST", FETCH, KEYS, content_type=JSON)
    with server.wire() as wire:
        for place in range(1, len(whole)):
            wire.send(whole)
            assert wire.read().status == 200
            wire.send(whole + whole[:place])
            assert wire.read().status == 200
            wire.send(whole[place:] + whole)
            assert [wire.read().status, wire.read().status] == [200, 200]


def test_chunk_extensions_say_nothing(server: RunningServer) -> None:
    with server.wire() as wire:
        wire.send(head("transfer-encoding: chunked") + b'd;a=b;c="d"\r\n' + KEYS + b"\r\n0;x\r\n\r\n")
        assert wire.read().status == 200
        assert wire.ask("POST", FETCH, KEYS, content_type=JSON).status == 200


def test_pipelined_requests_are_answered_in_order(server: RunningServer) -> None:
    kinds: list[tuple[bytes, int | None]] = []
    for number in range(120):
        body = json.dumps({"keys": [number], "columns": ["y"]}).encode()
        path = (FETCH, SLOW, FETCH)[number % 3]
        if number % 7 == 3:
            kinds.append((request("GET", "/healthz", x_request_id=f"r{number}"), None))
        elif number % 11 == 5:
            kinds.append((head("transfer-encoding: chunked", f"x-request-id: r{number}") + chunked(body), number))
        else:
            kinds.append((request("POST", path, body, content_type=JSON, x_request_id=f"r{number}"), number))
    whole = b"".join(one for one, _ in kinds)
    for size in (len(whole), 1000, 37):
        with server.wire() as wire:
            for at in range(0, len(whole), size):
                wire.send(whole[at : at + size])
            for number, (_, wanted) in enumerate(kinds):
                found = wire.read()
                assert found.status == 200 and found.headers["x-request-id"] == f"r{number}"
                assert wanted is None or found.json()["columns"]["y"] == [wanted]


def test_nothing_is_answered_behind_the_last_request(server: RunningServer) -> None:
    for path in (FETCH, SLOW):
        with server.wire() as wire:
            last = request("POST", path, KEYS, content_type=JSON, connection="close")
            wire.send(last + request("POST", FETCH, KEYS, content_type=JSON))
            found = wire.read()
            assert found.status == 200 and found.headers["connection"] == "close"
            assert wire.is_closed()


def test_expect_is_answered_first(server: RunningServer) -> None:
    with server.wire() as wire:
        wire.send(request("POST", FETCH, None, content_type=JSON, content_length=str(len(KEYS)), expect="100-continue"))
        assert wire.read(has_body=False).status == 100
        wire.send(KEYS)
        assert wire.read().status == 200
        assert wire.ask("POST", FETCH, KEYS, content_type=JSON).status == 200


def test_an_upgrade_without_a_body_is_ignored(server: RunningServer) -> None:
    with server.wire() as wire:
        wire.send(request("GET", "/healthz", connection="upgrade", upgrade="h2c") + HIDDEN)
        found = wire.read()
        assert found.status == 200 and found.headers["connection"] == "close"
        assert wire.is_closed()


def test_http_1_0_ends_the_connection(server: RunningServer) -> None:
    for path in (FETCH, SLOW):
        with server.wire() as wire:
            wire.send(request("POST", path, KEYS, content_type=JSON).replace(b"HTTP/1.1", b"HTTP/1.0"))
            found = wire.read()
            assert found.status == 200 and found.headers["connection"] == "close"
            assert wire.is_closed()


def test_a_peer_that_does_not_read_is_not_read(server: RunningServer) -> None:
    """Requests pile up with the one who sends them, and all are answered when it reads."""
    body = json.dumps({"keys": list(range(1000))}).encode()
    one = request("POST", FETCH, body, content_type=JSON)
    with server.wire() as wire:
        wire.socket.settimeout(1.0)
        sent = 0
        try:
            for _ in range(20_000):
                wire.socket.sendall(one)
                sent += 1
        except TimeoutError:
            pass
        assert 0 < sent < 20_000, "the server stopped reading"
        wire.socket.settimeout(60)
        assert {wire.read().status for _ in range(sent)} == {200}
