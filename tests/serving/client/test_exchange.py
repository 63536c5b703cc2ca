"""Requests and replies over real sockets: in pieces, in chunks, too much, too little, too late."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.serving.client.wire_server import Wire, WireServer, answer_body, answers, hash_of, ok, serving, status
from tests.waiting import wait_until

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError, NotFoundError, ServerError

Use = Callable[..., Any]
KEYS = ["ann", "bob", "schön"]


def rows_of(answer: hw.Answer) -> list[list[float]]:
    found: list[list[float]] = answer.to_numpy().tolist()
    return found


EXPECTED = [[float(len(key)), float(hash_of(key))] for key in KEYS]


def fetch(client: Any) -> list[Any]:
    return [lambda: client.fetch("spend", KEYS)]


def test_what_is_sent_and_what_comes_back(using: Use) -> None:
    with serving(answers) as server:
        answer = using(server.url, fetch, token="secret")
    assert rows_of(answer) == EXPECTED and answer.found.all()
    assert str(answer.frontier) == "orders@42" and dict(answer.versions) == {"spend": 7}
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v1/tables/spend/fetch")
    assert request.headers["authorization"] == "Bearer secret" and request.headers["host"] == server.url[7:]
    assert request.headers["content-type"] == request.headers["accept"] == "application/vnd.apache.arrow.stream"
    assert request.keys.to_pydict() == {"key": KEYS}


def test_options_become_the_query(using: Use) -> None:
    def use(client: Any) -> list[Any]:
        options = {"found": False, "status": True, "event_time": True, "missing": "drop", "min_frontier": "b@2 a@1"}
        return [
            lambda: client.fetch("spend", KEYS, ["a", "b b"], **options, wait=0.5),
            lambda: client.fetch("spend", KEYS, min_frontier=hw.Frontier(orders=3)),
            lambda: client.fetch_many({"spend": ["a"], "risk": None}, {"id": KEYS}, status=True),
            lambda: client.fetch_many(["spend", "risk"], KEYS),
        ]

    with serving(answers) as server:
        using(server.url + "/below/", use, timeout=4)
    assert [request.target for request in server.requests] == [
        "/below/v1/tables/spend/fetch?columns=a,b%20b&found=0&status=1&event_time=1&min_frontier=a%401%20b%402&wait=0.5&missing=drop",
        "/below/v1/tables/spend/fetch?min_frontier=orders%403&wait=4",
        "/below/v1/fetch?tables=%7B%22spend%22%3A%5B%22a%22%5D%2C%22risk%22%3Anull%7D&status=1",
        "/below/v1/fetch?tables=%7B%22spend%22%3Anull%2C%22risk%22%3Anull%7D",
    ]
    assert server.requests[2].keys.column_names == ["id"] and server.requests[3].keys.column_names == ["key"]


def test_the_rest_of_the_api(using: Use) -> None:
    replies = {
        "GET /v1/tables": {"tables": [{"name": "spend"}]},
        "GET /v1/tables/spend": {"name": "spend"},
        "GET /v1/tables/spend/schema": {"key": ["id"]},
        "GET /v1/tables/spend/versions": {"versions": [{"version": 7}]},
        "PUT /v1/tables/spend/rows": {"rows": 2},
        "POST /v1/tables/spend/rows/delete": {"keys": 1},
        "PUT /v1/tables/spend": {"name": "spend"},
        "GET /healthz": {"status": "ok"},
        "GET /readyz": {"status": "not ready"},
    }

    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            if request.method == "DELETE":
                wire.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            elif request.target == "/metrics":
                wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\na 1\n")
            else:
                code = 503 if request.target == "/readyz" else 200
                wire.send(status(code, replies[f"{request.method} {request.target}"]))

    def use(client: Any) -> list[Any]:
        return [
            client.tables,
            lambda: client.describe("spend"),
            lambda: client.schema("spend"),
            lambda: client.versions("spend"),
            lambda: client.write("spend", [{"id": "a", "x": 1}, {"id": "b", "x": None}]),
            lambda: client.delete("spend", ["a"]),
            lambda: client.create("spend", key="id", columns={"id": "utf8", "x": "int64"}, ttl=60),
            client.health,
            client.ready,
            client.metrics,
            lambda: client.drop("spend"),
        ]

    found: list[Any] = []

    def noted(client: Any) -> list[Any]:
        return use(client)

    with serving(serve) as server:
        found = [using(server.url, lambda client, n=n: [noted(client)[n]]) for n in range(11)]
    assert found[:4] == [[{"name": "spend"}], {"name": "spend"}, {"key": ["id"]}, [{"version": 7}]]
    assert found[4:7] == [{"rows": 2}, {"keys": 1}, {"name": "spend"}]
    assert found[7:] == [{"status": "ok"}, {"status": "not ready"}, "a 1\n", None]
    written, deleted, created = server.requests[4:7]
    assert written.keys.to_pylist() == [{"id": "a", "x": 1}, {"id": "b", "x": None}]
    assert deleted.keys.to_pydict() == {"key": ["a"]}
    assert created.body == b'{"key": ["id"], "columns": {"id": "utf8", "x": "int64"}, "ttl": 60}'


@pytest.mark.parametrize("piece", [1, 7, 100, 1000])
def test_replies_in_pieces(using: Use, piece: int) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            wire.send(ok(answer_body(request)), piece=piece)

    with serving(serve) as server:
        assert rows_of(using(server.url, lambda client: fetch(client) * 3)) == EXPECTED
    assert server.connections == 1


@pytest.mark.parametrize("piece", [None, 1])
def test_replies_in_chunks(using: Use, piece: int | None) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            body = answer_body(request)
            chunks = [body[at : at + 100] for at in range(0, len(body), 100)]
            sent = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/vnd.apache.arrow.stream\r\ntransfer-encoding: chunked\r\n\r\n"
            wire.send(head + sent, piece=piece)

    with serving(serve) as server:
        assert rows_of(using(server.url, lambda client: fetch(client) * 2)) == EXPECTED
    assert server.connections == 1


def test_replies_that_end_with_the_connection(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        request = server.next(wire)
        assert request is not None
        wire.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/vnd.apache.arrow.stream\r\n\r\n" + answer_body(request)
        )

    with serving(serve) as server:
        assert rows_of(using(server.url, lambda client: fetch(client) * 2)) == EXPECTED
    assert server.connections == 2


def test_an_interim_reply_is_skipped(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            wire.send(
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
                + ok(answer_body(request))
            )

    with serving(serve) as server:
        assert rows_of(using(server.url, lambda client: fetch(client) * 2)) == EXPECTED
    assert server.connections == 1


def test_connections_are_kept(using: Use) -> None:
    with serving(answers) as server:
        using(server.url, lambda client: fetch(client) * 10)
    assert server.connections == 1 and len(server.requests) == 10


def test_a_server_that_closes_after_each_reply(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        request = server.next(wire)
        assert request is not None
        wire.send(ok(answer_body(request), connection="close"))

    with serving(serve) as server:
        assert rows_of(using(server.url, lambda client: fetch(client) * 3, retries=0)) == EXPECTED
    assert server.connections == 3


def write(client: Any) -> list[Any]:
    return [lambda: client.write("spend", [{"id": 1}])]


@pytest.mark.parametrize("call", [fetch, write], ids=["fetch", "write"])
def test_an_idle_connection_that_the_server_has_closed(using: Use, call: Callable[[Any], list[Any]]) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        request = server.next(wire)
        assert request is not None
        wire.send(ok(answer_body(request)) if call is fetch else status(200, {"rows": 1}))

    with serving(serve) as server:

        def use(client: Any) -> list[Any]:
            closed = lambda: wait_until(lambda: server.at_once == 0, "the server closing its connections")  # noqa: E731
            return [*call(client), closed, *call(client), closed, *call(client)]

        using(server.url, use, retries=0)
    assert server.connections == 3 and len(server.requests) == 3


@pytest.mark.parametrize("how", ["reset", "close", "half"])
def test_a_connection_that_breaks_is_tried_again(using: Use, how: str) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            if wire.number > 2:
                wire.send(ok(answer_body(request)))
            else:
                wire.send(ok(answer_body(request))[:500] if how == "half" else b"")
                if how == "reset":
                    wire.reset()
                return

    with serving(serve) as server:
        assert rows_of(using(server.url, fetch)) == EXPECTED
        assert len(server.requests) == 3
    with serving(serve) as server, pytest.raises(ServerError, match="E1765"):
        using(server.url, fetch, retries=1)
    assert len(server.requests) == 2


def test_a_write_is_not_sent_twice(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        server.next(wire)
        wire.reset()

    with serving(serve) as server, pytest.raises(ServerError, match="E1765") as caught:
        using(server.url, write)
    assert len(server.requests) == 1 and caught.value.where == server.url
    assert caught.value.hint is not None and "a write may have been made, or not" in caught.value.hint


def test_a_server_that_is_busy_is_asked_again_when_it_says_so(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while (request := server.next(wire)) is not None:
            busy = len(server.requests) < 3
            wire.send(
                status(503, {"code": "E8204", "message": "busy"}, retry_after="0") if busy else ok(answer_body(request))
            )

    with serving(serve) as server:
        assert rows_of(using(server.url, fetch)) == EXPECTED
    assert len(server.requests) == 3 and server.connections == 1


@pytest.mark.parametrize(
    ("call", "headers"), [(fetch, {}), (write, {"retry_after": "0"}), (fetch, {"retry_after": "60"})]
)
def test_a_server_that_is_busy_is_not_asked_again_otherwise(using: Use, call: Any, headers: dict[str, str]) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while server.next(wire) is not None:
            wire.send(status(503, {"code": "E8204", "message": "busy", "hint": "try again"}, **headers))

    with serving(serve) as server, pytest.raises(HeadwaterError, match=r"E8204.*busy"):
        using(server.url, call)
    assert len(server.requests) == 1


def test_retries_stay_within_a_budget(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while server.next(wire) is not None:
            wire.send(status(503, {"code": "E8204", "message": "busy"}, retry_after="0"))

    with serving(serve) as server:

        def refused(client: Any) -> list[Any]:
            async def awaited(given: Any) -> None:
                with pytest.raises(HeadwaterError):
                    await given

            def once() -> Any:
                try:
                    given = client.fetch("spend", KEYS)
                except HeadwaterError:
                    return None
                return awaited(given)

            return [once] * 40

        using(server.url, refused, retries=2)
    assert 40 <= len(server.requests) <= 40 + 10 + 1


def test_no_answer_in_time(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        server.next(wire)
        server.next(wire)  # waits until the client has gone

    with serving(serve) as server, pytest.raises(ServerError, match=r"E1766.*within 0.2 s"):
        using(server.url, fetch, timeout=0.2)
    assert len(server.requests) == 1  # a call that has taken its time is not made again


def test_an_answer_that_trickles_in_is_too_late_all_the_same(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        request = server.next(wire)
        assert request is not None
        for byte in ok(answer_body(request)):
            wire.send(bytes([byte]))
            time.sleep(0.02)

    began = time.monotonic()
    with serving(serve) as server, pytest.raises(ServerError, match="E1766"):
        using(server.url, fetch, timeout=0.3)
    assert time.monotonic() - began < 60


def test_a_server_that_is_not_there(using: Use) -> None:
    with serving(answers) as server:
        pass
    with pytest.raises(ServerError, match="E1764") as caught:
        using(server.url, fetch)
    assert caught.value.where == server.url and isinstance(caught.value, OSError)
    with pytest.raises(ServerError, match="E1764"):
        using("http://no-such-host.invalid:1", fetch, retries=0)


GARBAGE = {
    "no HTTP": b"hello\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
    "a length that is no number": b"HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    "a length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length without end": b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999999999\r\n\r\n",
    "a length beyond numbers": b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 40 + b"\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 100_000,
    "another protocol": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "a chunk that is no number": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "a line that is folded": b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\nno colon here\r\n\r\n",
    "no Arrow": b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi",
    "nothing": b"HTTP/1.1 204 No Content\r\n\r\n",
    "broken Arrow": ok(b"\xff\xff\xff\xff" + b"\x10" * 60),
    "no bytes of Arrow": ok(b""),
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE)
def test_what_no_server_sends(using: Use, sent: bytes) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        server.next(wire)
        wire.send(sent)
        server.next(wire)

    with serving(serve) as server, pytest.raises(ServerError, match="E1767"):
        using(server.url, fetch)
    assert len(server.requests) == 1


def test_an_answer_may_not_be_larger_than_allowed(using: Use) -> None:
    with serving(answers) as server:
        assert rows_of(using(server.url, fetch, max_answer_bytes=10_000)) == EXPECTED
        with pytest.raises(ServerError, match=r"E1767.*the most that is taken"):
            using(server.url, fetch, max_answer_bytes=100)


def test_bytes_behind_a_reply_are_never_taken_for_the_next_one(using: Use) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        request = server.next(wire)
        assert request is not None
        false = ok(answer_body(request).replace(b"\x40", b"\x41"))
        wire.send(ok(answer_body(request)) + false)
        server.next(wire)

    with serving(serve) as server:
        assert rows_of(using(server.url, lambda client: fetch(client) * 3)) == EXPECTED
    assert server.connections == 3


@pytest.mark.parametrize(
    ("code", "status_code", "kind"),
    [
        ("E1002", 400, NotFoundError),
        ("E1001", 400, InputError),
        ("E1601", 404, NotFoundError),
        ("E1701", 400, hw.SchemaError),
        ("E4001", 409, hw.ConflictError),
        ("E9001", 500, ServerError),
    ],
)
def test_errors_of_the_server_have_their_class(
    using: Use, code: str, status_code: int, kind: type[HeadwaterError]
) -> None:
    facts = {"code": code, "message": "that is wrong", "where": "columns", "hint": "do this"}

    def serve(server: WireServer, wire: Wire) -> None:
        while server.next(wire) is not None:
            wire.send(status(status_code, facts))

    with serving(serve) as server, pytest.raises(kind) as caught:
        using(server.url, fetch)
    assert type(caught.value) is kind and caught.value.as_dict() == facts
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad   gateway</html>", b"[]", b'{"code": 3}', b'{"code": "E1002", "message": 4}']
)
def test_errors_that_say_nothing(using: Use, body: bytes) -> None:
    def serve(server: WireServer, wire: Wire) -> None:
        while server.next(wire) is not None:
            wire.send(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    with serving(serve) as server, pytest.raises(ServerError, match=r"E1768.*answered 502"):
        using(server.url, fetch)


def test_tuples_are_named_after_the_key_of_the_table(using: Use) -> None:
    with serving(answers) as server:
        using(server.url, lambda client: [lambda: client.fetch("spend", [("x", 1), ("y", 2)])] * 2)
        assert [request.target for request in server.requests] == [
            "/v1/tables/spend/schema",
            "/v1/tables/spend/fetch",
            "/v1/tables/spend/fetch",
        ]
        assert server.requests[1].keys.to_pydict() == {"a": ["x", "y"], "b": [1, 2]}
        with pytest.raises(InputError, match="E1001"):
            using(server.url, lambda client: [lambda: client.fetch("spend", [("x", 1, 2)])])


def test_a_client_that_is_closed(using: Use) -> None:
    with serving(answers) as server, pytest.raises(InputError, match="a client that is open"):
        using(server.url, lambda client: [*fetch(client), client.close, *fetch(client)])


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://x", "http://", "http://x:y", "http://u:p@x", "http://x?a=1", 5]
)
def test_addresses_that_are_none(url: Any) -> None:
    with pytest.raises(InputError, match=r"E1001.*`url`"):
        hw.Client(url)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": "5"},
        {"retries": -1},
        {"pool": 0},
        {"token": "a\r\nb: c"},
        {"token": "a b"},
        {"token": ""},
    ],
)
def test_options_that_are_wrong(options: dict[str, Any]) -> None:
    for kind in (hw.Client, hw.AsyncClient):
        with pytest.raises(InputError, match="E1001") as caught:
            kind("http://127.0.0.1:1", **options)
        assert "b: c" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"table": ""},
        {"table": ".."},
        {"table": 3},
        {"columns": ["a,b"]},
        {"columns": [3]},
        {"missing": "keep"},
        {"min_frontier": "orders"},
        {"wait": -1},
        {"keys": "ann"},
        {"keys": [1, "a", object()]},
    ],
)
def test_arguments_that_are_wrong(arguments: dict[str, Any]) -> None:
    with hw.Client("http://127.0.0.1:1") as client, pytest.raises(InputError):
        client.fetch(**{"table": "spend", "keys": KEYS, **arguments})


def test_names_cannot_leave_their_place_in_the_request(using: Use) -> None:
    with serving(answers) as server:
        using(server.url, lambda client: [lambda: client.fetch("a/b?c\r\nx: y", KEYS, ["d&e\r\n"])])
    assert server.requests[0].target == "/v1/tables/a%2Fb%3Fc%0D%0Ax%3A%20y/fetch?columns=d%26e%0D%0A"
    assert "x" not in server.requests[0].headers


def test_tokens_are_not_shown() -> None:
    client = hw.Client("http://127.0.0.1:1", "secret")
    assert "secret" not in repr(client) and "secret" not in repr(client._address)
