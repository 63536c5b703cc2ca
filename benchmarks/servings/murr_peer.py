"""Murr's servers, the current one and the last that came as a wheel, with a lean client: a socket, JSON keys, an Arrow answer.

Current Murr is built outside of the tree from its crate; 0.1.9 has its server in the Python package, for a Python of its own.
The current one answers only what it has found, in no order; the client puts that in order, as whoever asks has to.
"""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.servings.redis_peer import free_port
from benchmarks.servings.world import COLUMNS, World

__all__ = ["Murr", "MurrWheel"]

_ARROW = "application/vnd.apache.arrow.stream"
_ROWS_A_WRITE = 50_000
_WHEEL = """
import sys, threading
from murr.sync import Murr
server = Murr.start_local(sys.argv[1], http_port=int(sys.argv[2]))
threading.Event().wait()
"""


class _MurrServer:
    """A server of our own, on loopback, and a connection to it."""

    name: str

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="murr-")
        log = Path(self.folder.name, "log")
        with log.open("w") as out:
            self.process = subprocess.Popen(self._command(), stdout=out, stderr=out)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.request("GET", "/health")
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise RuntimeError(log.read_text()[-2000:]) from None
                time.sleep(0.1)
        self.socket: socket.socket | None = None

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _definition(self, columns: dict[str, str]) -> dict[str, Any]:
        raise NotImplementedError

    def _bodies(self, chunk: pa.Table) -> Iterable[bytes]:
        raise NotImplementedError

    def _keys(self, keys: list[str]) -> Any:
        raise NotImplementedError

    def _ordered(self, batch: pa.RecordBatch, columns: list[str]) -> list[pa.Array]:
        raise NotImplementedError

    def request(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", body, {"Content-Type": kind}, method=method
        )
        with urllib.request.urlopen(asked) as answer:
            return bytes(answer.read())

    def load(self, world: World) -> float:
        """Write the floats of all rows; gives the seconds."""
        return self._load("t", dict.fromkeys(COLUMNS, "float32"), world.chunks())

    def load_strings(self, chunk: pa.Table) -> float:
        """Write a string and two floats for some rows."""
        columns = {"title": "utf8", "c0": "float32", "c1": "float32"}
        return self._load("s", columns, [chunk.select(["key", *columns])])

    def _load(self, table: str, columns: dict[str, str], chunks: Iterable[pa.Table]) -> float:
        self.request("PUT", f"/api/v1/table/{table}", json.dumps(self._definition(columns)).encode())
        start = time.perf_counter()
        for chunk in chunks:
            for body in self._bodies(chunk):
                self.request("PUT", f"/api/v1/table/{table}/write", body, _ARROW)
        self._settle(table)
        return time.perf_counter() - start

    def _settle(self, table: str) -> None:
        """What follows a bulk load."""

    def encode(self, keys: list[str], columns: list[str], table: str = "t") -> bytes:
        """A request."""
        body = json.dumps({"keys": self._keys(keys), "columns": columns}, separators=(",", ":")).encode()
        head = (
            f"POST /api/v1/table/{table}/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Accept: {_ARROW}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def columns(self, keys: list[str], columns: list[str], table: str = "t") -> list[pa.Array]:
        """Columns in the order of the keys."""
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.buffer = bytearray(4 << 20)
        self.socket.sendall(self.encode(keys, columns, table))
        view, got, end, total = memoryview(self.buffer), 0, -1, 1 << 62
        while got < total:
            count = self.socket.recv_into(view[got:])
            assert count, "the server closed the connection"
            got += count
            if end < 0 and (end := self.buffer.find(b"\r\n\r\n", 0, got)) >= 0:
                lines = bytes(view[:end]).lower().split(b"\r\n")
                assert b" 200 " in lines[0] + b" ", lines[0]
                length = next(int(x.split(b":")[1]) for x in lines if x.startswith(b"content-length"))
                total = end + 4 + length
        batch = pa.ipc.open_stream(bytes(view[end + 4 : total])).read_next_batch()
        return self._ordered(batch, columns)

    def fetch(self, keys: list[str], columns: list[str]) -> Any:
        return np.stack([array.to_numpy() for array in self.columns(keys, columns)], axis=1)

    @property
    def pid(self) -> int:
        return self.process.pid

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


class Murr(_MurrServer):
    """The current server; ``binary`` is its program."""

    name = "murr 0.3.1"

    def __init__(self, binary: str) -> None:
        self.binary = binary
        super().__init__()

    def _command(self) -> list[str]:
        config = Path(self.folder.name, "murr.yaml")
        config.write_text(
            f"server:\n  http:\n    host: 127.0.0.1\n    port: {self.port}\n  grpc:\n    host: 127.0.0.1\n"
            f"    port: {free_port()}\nstorage:\n  path: {self.folder.name}/data\n  mmap: {{}}\n"
        )
        return [self.binary, "--config", str(config)]

    def _definition(self, columns: dict[str, str]) -> dict[str, Any]:
        key = {"key": {"dtype": "utf8", "nullable": False, "key": True}}
        return {"columns": key | {name: {"dtype": kind, "nullable": False} for name, kind in columns.items()}}

    def _bodies(self, chunk: pa.Table) -> Iterable[bytes]:
        return [_stream(chunk.schema, chunk.combine_chunks().to_batches(max_chunksize=_ROWS_A_WRITE))]

    def _settle(self, table: str) -> None:
        self.request("POST", f"/api/v1/table/{table}/compact")

    def _keys(self, keys: list[str]) -> Any:
        return {"key": keys}

    def _ordered(self, batch: pa.RecordBatch, columns: list[str]) -> list[pa.Array]:
        order = pa.array(np.argsort(batch["_idx"].to_numpy()))
        return [batch[name].take(order) for name in columns]


class MurrWheel(_MurrServer):
    """The server of 0.1.9; ``python`` is one that has that package."""

    name = "murr 0.1.9"

    def __init__(self, python: str) -> None:
        self.python = python
        super().__init__()

    def _command(self) -> list[str]:
        return [self.python, "-c", _WHEEL, self.folder.name, str(self.port)]

    def _definition(self, columns: dict[str, str]) -> dict[str, Any]:
        key = {"key": {"dtype": "utf8", "nullable": False}}
        return {"key": "key", "columns": key | {n: {"dtype": k, "nullable": False} for n, k in columns.items()}}

    def _bodies(self, chunk: pa.Table) -> Iterable[bytes]:
        return [_stream(chunk.schema, chunk.combine_chunks().to_batches())]

    def _keys(self, keys: list[str]) -> Any:
        return keys

    def _ordered(self, batch: pa.RecordBatch, columns: list[str]) -> list[pa.Array]:
        return [batch[name] for name in columns]


def _stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
