"""A worker: one process that answers requests, on uvloop and uvicorn.

It is forked by the supervisor, which has imported everything and bound the socket already, so it is ready as soon as
its tables are mapped. It ends gracefully when it is told to (SIGTERM), and when the supervisor is gone, however that
went: the pipe whose other end the supervisor holds is then at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from headwater.serving.server.app import make_app
from headwater.serving.server.metrics import ServerMetrics
from headwater.serving.server.protocol import FetchProtocol, sweep
from headwater.serving.server.service import Service

if TYPE_CHECKING:
    from types import FrameType

    from headwater.serving.server.options import ServerOptions
    from headwater.serving.server.served import Backing
    from headwater.serving.server.shared_counters import SharedCounters

__all__ = ["WorkerServer", "run_worker", "uvicorn_config"]

_SWEEP_TICKS = 5
"""uvicorn ticks ten times a second."""


def uvicorn_config(service: Service) -> uvicorn.Config:
    """How uvicorn runs the application of a process."""
    options = service.options
    tls = options.tls
    return uvicorn.Config(
        make_app(service),
        http=FetchProtocol,
        ws="none",
        loop="uvloop",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=options.access_log,
        proxy_headers=False,
        server_header=False,
        headers=[("server", "headwater")],
        timeout_keep_alive=round(options.keep_alive_s),
        timeout_graceful_shutdown=round(options.drain_s),
        ssl_certfile=None if tls is None else tls.certfile,
        ssl_keyfile=None if tls is None else tls.keyfile,
        ssl_keyfile_password=None if tls is None else tls.password,
        ssl_ca_certs=None if tls is None else tls.ca,
        ssl_cert_reqs=_client_certificates(tls is not None and tls.ca is not None),
    )


def _client_certificates(required: bool) -> int:
    import ssl

    return ssl.CERT_REQUIRED if required else ssl.CERT_NONE


class WorkerServer(uvicorn.Server):
    """uvicorn's server, with our signals, a sweep of slow connections, and a word when it listens."""

    def __init__(
        self, config: uvicorn.Config, service: Service, *, parent: int = -1, on_ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.service, self._parent, self._on_ready = service, parent, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._parent >= 0:
            asyncio.get_running_loop().add_reader(self._parent, self._orphaned)
        self._on_ready()

    def _orphaned(self) -> None:
        asyncio.get_running_loop().remove_reader(self._parent)
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if counter % _SWEEP_TICKS == 0:
            limits = self.service.options.limits
            sweep(self.server_state.connections, limits.request_timeout_s, self.service.options.keep_alive_s)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.is_stopping = True
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = signal.signal(signal.SIGTERM, self._stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.should_exit = True


def run_worker(
    options: ServerOptions,
    make_backing: Callable[[], Backing],
    counters: SharedCounters,
    region: int,
    listener: socket.socket,
    *,
    parent: int = -1,
    ready: int = -1,
) -> None:
    """Answer requests until told to stop. ``parent`` is a pipe that ends with the supervisor,
    ``ready`` one to write to.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor ends its workers
    service = Service(options, make_backing(), ServerMetrics(counters, region))

    def tell() -> None:
        if ready >= 0:
            os.write(ready, b"r")
            os.close(ready)

    WorkerServer(uvicorn_config(service), service, parent=parent, on_ready=tell).run(sockets=[listener])
