"""Redis: packed blobs by MGET, with redis-py and with a client that does only that; and a hash per row."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.servings.world import COLUMNS, World

__all__ = ["Lean", "Redis"]

WIDTH = 4 * len(COLUMNS)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Redis:
    """A redis-server of our own, on loopback."""

    def __init__(self) -> None:
        import redis

        path = shutil.which("redis-server")
        assert path is not None, "redis-server is not installed (Debian: apt-get install redis-server)"
        self.port = free_port()
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([path, *arguments], stdout=subprocess.DEVNULL)
        self.client = redis.Redis(port=self.port)
        while True:
            try:
                self.client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        self.before = int(self.client.info("memory")["used_memory"])

    def load(self, world: World) -> float:
        start = time.perf_counter()
        for begin in range(0, world.rows, 20_000):
            rows = world.values[begin : begin + 20_000]
            raw = rows.tobytes()
            self.client.mset({f"item_{begin + i}": raw[i * WIDTH : (i + 1) * WIDTH] for i in range(len(rows))})
        return time.perf_counter() - start

    def load_hashes(self, world: World, rows: int) -> None:
        for begin in range(0, rows, 5_000):
            with self.client.pipeline(transaction=False) as pipe:
                for i in range(begin, min(rows, begin + 5_000)):
                    pipe.hset(f"hash_{i}", mapping=dict(zip(COLUMNS, world.values[i].tolist(), strict=True)))
                pipe.execute()

    def load_strings(self, chunk: pa.Table) -> None:
        """Two floats and a string in a blob, for some rows."""
        floats = np.stack([chunk["c0"].to_numpy(), chunk["c1"].to_numpy()], axis=1)
        raw, titles = floats.tobytes(), chunk["title"].to_pylist()
        for begin in range(0, len(titles), 20_000):
            several = range(begin, min(len(titles), begin + 20_000))
            self.client.mset({f"title_{i}": raw[8 * i : 8 * i + 8] + titles[i].encode() for i in several})

    @property
    def bytes(self) -> int:
        return int(self.client.info("memory")["used_memory"]) - self.before

    def mget(self, keys: list[str]) -> Any:
        return np.frombuffer(b"".join(self.client.mget(keys)), np.float32).reshape(-1, len(COLUMNS))

    def hmget(self, keys: list[str]) -> Any:
        with self.client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hmget(key, COLUMNS)
            return np.array(pipe.execute(), np.float32)

    def close(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait()


class Lean:
    """MGET of blobs of one size by hand: every key has to be there."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(1 << 20)

    def encode(self, keys: list[str]) -> bytes:
        parts = [b"*%d\r\n$4\r\nMGET\r\n" % (len(keys) + 1)]
        parts += [b"$%d\r\n%s\r\n" % (len(key), key.encode()) for key in keys]
        return b"".join(parts)

    def mget(self, keys: list[str]) -> Any:
        self.socket.sendall(self.encode(keys))
        head, each = len(b"*%d\r\n" % len(keys)), WIDTH + len(b"$%d\r\n" % WIDTH) + 2
        total, got = head + each * len(keys), 0
        view = memoryview(self.buffer)
        while got < total:
            got += self.socket.recv_into(view[got:])
        rows = np.frombuffer(self.buffer, np.uint8, each * len(keys), head).reshape(len(keys), each)
        return np.ascontiguousarray(rows[:, each - 2 - WIDTH : each - 2]).view(np.float32)
