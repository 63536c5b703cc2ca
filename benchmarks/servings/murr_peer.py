"""Murr's server, built outside of the tree, with a lean client: a socket, an Arrow request, an Arrow answer."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.servings.redis_peer import free_port
from benchmarks.servings.world import COLUMNS, World

__all__ = ["Murr"]

_ARROW = "application/vnd.apache.arrow.stream"


class Murr:
    """A murr server of our own, on loopback, with one table."""

    def __init__(self, binary: str) -> None:
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="murr-")
        config = Path(self.folder.name, "murr.yaml")
        config.write_text(
            f"server:\n  http:\n    host: 127.0.0.1\n    port: {self.port}\n  grpc:\n    host: 127.0.0.1\n"
            f"    port: {free_port()}\nstorage:\n  path: {self.folder.name}/data\n  mmap: {{}}\n"
        )
        log = open(Path(self.folder.name, "log"), "w")  # noqa: SIM115
        self.process = subprocess.Popen([binary, "--config", str(config)], stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.request("GET", "/health")
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise RuntimeError(Path(self.folder.name, "log").read_text()[-2000:]) from None
                time.sleep(0.1)
        self.socket: socket.socket | None = None

    def request(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", body, {"Content-Type": kind}, method=method
        )
        with urllib.request.urlopen(asked) as answer:
            return bytes(answer.read())

    def load(self, world: World) -> float:
        columns = {"key": {"dtype": "utf8", "nullable": False, "key": True}}
        columns |= {name: {"dtype": "float32", "nullable": False} for name in COLUMNS}
        self.request("PUT", "/api/v1/table/t", json.dumps({"columns": columns}).encode())
        start = time.perf_counter()
        for chunk in world.chunks():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, chunk.schema) as writer:
                for batch in chunk.combine_chunks().to_batches(max_chunksize=50_000):
                    writer.write_batch(batch)
            self.request("PUT", "/api/v1/table/t/write", sink.getvalue().to_pybytes(), _ARROW)
        self.request("POST", "/api/v1/table/t/compact")
        return time.perf_counter() - start

    def fetch(self, keys: list[str], columns: list[str]) -> Any:
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.buffer = bytearray(4 << 20)
        body = json.dumps({"keys": {"key": keys}, "columns": columns}, separators=(",", ":")).encode()
        head = (
            f"POST /api/v1/table/t/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: {_ARROW}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.socket.sendall(head.encode() + body)
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
        order = np.argsort(batch["_idx"].to_numpy())
        return np.stack([batch[name].to_numpy()[order] for name in columns], axis=1)

    @property
    def pid(self) -> int:
        return self.process.pid

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()
