"""A server of bytes: each test says what is sent, piece by piece, and what happens to the connection."""

from __future__ import annotations

import io
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"


@dataclass
class WireRequest:
    """What a client sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def keys(self) -> pa.Table:
        return pa.ipc.open_stream(self.body).read_all()


class Wire:
    """One connection, seen by the server."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock, self.number = sock, number
        self._stream = sock.makefile("rb")

    def request(self) -> WireRequest | None:
        """The next request; None when the client has closed the connection."""
        first = self._stream.readline()
        if not first:
            return None
        method, target, version = first.decode("ascii").split()
        assert version == "HTTP/1.1"
        headers: dict[str, str] = {}
        while (line := self._stream.readline().decode("latin-1").strip()) != "":
            name, value = line.split(": ", 1)
            assert name not in headers and name == name.lower()
            headers[name] = value
        return WireRequest(method, target, headers, self._stream.read(int(headers.get("content-length", "0"))))

    def send(self, data: bytes, *, piece: int | None = None) -> None:
        """Send bytes, in pieces of so many, each in a packet of its own."""
        for at in range(0, len(data), piece or max(len(data), 1)):
            self.sock.sendall(data[at : at + (piece or len(data))])

    def reset(self) -> None:
        """End the connection as a process that was killed does."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._stream.close()
        self.sock.close()


@dataclass
class WireServer:
    """A listening socket; ``serve`` is called for each connection, in a thread of its own."""

    serve: Callable[[Wire], None]
    tls: ssl.SSLContext | None = None
    url: str = ""
    connections: int = 0
    at_once: int = 0
    most_at_once: int = 0
    requests: list[WireRequest] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.connections += 1
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                self._open.append(sock)
                number = self.connections
            threading.Thread(target=self._run, args=(sock, number), daemon=True).start()

    def _run(self, sock: socket.socket, number: int) -> None:
        try:
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
            self.serve(Wire(sock, number))
        except (OSError, ValueError):
            pass  # the client has gone
        except BaseException as error:  # noqa: BLE001
            self.failures.append(error)
        finally:
            with self._lock:
                self.at_once -= 1
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def stop(self) -> None:
        with self._lock:
            for sock in self._open:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def next(self, wire: Wire) -> WireRequest | None:
        """The next request of a connection, noted."""
        request = wire.request()
        if request is not None:
            with self._lock:
                self.requests.append(request)
        return request


@contextmanager
def serving(serve: Callable[[WireServer, Wire], None], tls: ssl.SSLContext | None = None) -> Iterator[WireServer]:
    """A server that runs while the block does."""
    server = WireServer(lambda wire: serve(server, wire), tls)
    listener = server.start()
    try:
        yield server
    finally:
        # A thread that waits in accept() is woken by shutdown(), and not by close().
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        server.stop()
    assert not server.failures, server.failures


def answer_body(request: WireRequest) -> bytes:
    """For each key two columns that tell it from others."""
    column = request.keys.column(0)
    lengths = [float(len(str(key))) for key in column.to_pylist()]
    numbers = [float(hash_of(key)) for key in column.to_pylist()]
    rows = pa.record_batch(
        {
            "length": pa.array(lengths, pa.float32()),
            "number": pa.array(numbers, pa.float32()),
            "_found": pa.array([True] * len(lengths)),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue()


def hash_of(key: Any) -> int:
    return sum((n + 1) * ord(letter) for n, letter in enumerate(str(key))) % 65_536


def ok(body: bytes, **headers: str) -> bytes:
    """A whole reply."""
    given = {"content-type": ARROW, "x-frontier": "orders@42", "x-version": "7", "content-length": str(len(body))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode() + body


def status(code: int, document: object, **headers: str) -> bytes:
    """A reply of another kind, with JSON."""
    body = json.dumps(document).encode()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {code} What\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{lines}\r\n"
    return head.encode() + body


def answers(server: WireServer, wire: Wire) -> None:
    """A server without faults."""
    while (request := server.next(wire)) is not None:
        if request.target.endswith("/schema"):
            wire.send(status(200, {"key": ["a", "b"], "columns": {}}))
        else:
            wire.send(ok(answer_body(request)))
