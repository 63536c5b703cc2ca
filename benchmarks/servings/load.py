"""Requests per second: some connections, each of which asks again as soon as it has its answer, all from one process.

The client side is one process with an event loop that only moves bytes: requests are made beforehand, and of an answer
only its length is read. So the server is what is measured, and every competitor is asked by the same code.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

__all__ = ["requests_per_second"]


class _Asker(asyncio.Protocol):
    def __init__(self, requests: Sequence[bytes], answer_bytes: int | None, until: float) -> None:
        self.requests, self.until = requests, until
        self.size, self.left = answer_bytes, 0
        self.done, self.at = 0, 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        self.left = -1 if self.size is None else self.size
        self.head = b""
        self.transport.write(self.requests[self.at % len(self.requests)])  # type: ignore[attr-defined]
        self.at += 1

    def data_received(self, data: bytes) -> None:
        if self.left < 0:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            lower = self.head[:end].lower()
            assert b" 200 " in lower[:20], self.head[:2000]
            at = lower.index(b"content-length:")
            length = int(lower[at + 15 :].split(b"\r\n", 1)[0])
            self.left = length - (len(self.head) - end - 4)
        else:
            self.left -= len(data)
        if self.left <= 0:
            self.done += 1
            if time.perf_counter() < self.until:
                self._ask()
            else:
                self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def _run(port: int, connections: int, requests: Sequence[bytes], answer: int | None, seconds: float) -> float:
    loop = asyncio.get_running_loop()
    until = time.perf_counter() + seconds
    start = time.perf_counter()
    askers = []
    for number in range(connections):
        mine = [*requests[number:], *requests[:number]]
        _, asker = await loop.create_connection(lambda mine=mine: _Asker(mine, answer, until), "127.0.0.1", port)  # type: ignore[misc]
        askers.append(asker)
    await asyncio.gather(*(asker.ended for asker in askers))
    return sum(asker.done for asker in askers) / (time.perf_counter() - start)


def requests_per_second(
    port: int, connections: int, requests: Sequence[bytes], *, answer_bytes: int | None = None, seconds: float = 2.0
) -> float:
    """How many answers came in a second; ``answer_bytes`` where the protocol does not say its length."""
    import uvloop

    return uvloop.run(_run(port, connections, requests, answer_bytes, seconds))
