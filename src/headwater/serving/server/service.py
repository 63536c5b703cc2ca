"""What the connections and routes of one process share: options, tables, and who answers what."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from headwater.serving.server.access import Access
from headwater.serving.server.fetching import Fetching
from headwater.serving.server.head_memory import HeadMemory
from headwater.serving.server.metrics import ServerMetrics
from headwater.serving.server.options import ServerOptions
from headwater.serving.server.reply import header_lines
from headwater.serving.server.served import Backing, ServedTables

__all__ = ["Service"]

_THREADS = 4


class Service:
    """One process of a server."""

    def __init__(self, options: ServerOptions, backing: Backing, metrics: ServerMetrics) -> None:
        self.options, self.metrics = options, metrics
        self.access = Access(options.tokens)
        self.tables = ServedTables(backing, metrics, options)
        self.fetching = Fetching(self.tables, self.access, options.limits)
        self.heads = HeadMemory()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="work")
        self.in_flight = 0
        """Requests that the application is answering."""
        self.is_stopping = False
        self._default_headers: Sequence[tuple[bytes, bytes]] = ()
        self._default_lines = b""

    async def start(self) -> None:
        """Begin to follow the tables."""
        await self.tables.start()

    def close(self) -> None:
        """Let go of the tables; nothing is under way any more."""
        self.is_stopping = True
        self.tables.close()
        self.threads.shutdown(wait=True, cancel_futures=True)

    def default_lines(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """The headers that uvicorn gives every answer, as lines; it makes a new list of them each second."""
        if headers is not self._default_headers:
            self._default_headers, self._default_lines = headers, header_lines(headers)
        return self._default_lines
