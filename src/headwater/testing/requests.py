"""Requests: how often an operation asks an object store, counted on the wire.

On S3 a small operation takes as long as its requests, one after the other, so their number is a figure to hold in a
test. They are counted where they cannot be missed, whoever sends them (our client, Arrow, an engine): a proxy on the
loopback interface stands between the lake and a real server, passes everything on as it is, and keeps a list.
Signatures stay valid, because the ``Host`` that the client signed is passed on too.

Kinds: ``get`` (a whole object or a range), ``head``, ``list``, ``put``, ``put_if_absent`` (with ``If-None-Match``: a
commit), ``delete``, and ``upload`` for the requests of a multipart upload.

>>> with serve_s3() as s3, counted(s3) as requests:  # doctest: +SKIP
...     lake = hw.connect(requests.url("lake"), storage_options=requests.options)
...     with requests.count() as seen:
...         lake.table("orders").append([{"id": 1}])
...     assert seen.total() <= 6, seen
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from headwater.testing.s3_server import S3Server

__all__ = ["CountedServer", "Requests", "counted"]

_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}


class Requests(Counter[str]):
    """How many requests of each kind were sent; ``log`` has them in order, each as its kind and the object's key."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[str, str]] = []

    def __str__(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.items()))
        return f"{self.total()} ({kinds})" if self else "0"


class CountedServer(S3Server):
    """The same server, reached through the proxy."""

    def __init__(self, server: S3Server, port: int) -> None:
        options = server.options
        endpoint = f"http://127.0.0.1:{port}"
        super().__init__(endpoint, server.bucket, options["AWS_ACCESS_KEY_ID"], options["AWS_SECRET_ACCESS_KEY"])
        self._open: list[Requests] = []
        self._lock = threading.Lock()

    @contextmanager
    def count(self) -> Iterator[Requests]:
        """Count the requests that arrive while the block runs, from any thread."""
        seen = Requests()
        with self._lock:
            self._open.append(seen)
        try:
            yield seen
        finally:
            with self._lock:
                self._open = [r for r in self._open if r is not seen]

    def saw(self, kind: str, key: str) -> None:
        with self._lock:
            for seen in self._open:
                seen[kind] += 1
                seen.log.append((kind, key))


@contextmanager
def counted(server: S3Server) -> Iterator[CountedServer]:
    """A way to ``server`` on which requests are counted; it ends with the block."""
    upstream = urlsplit(server.endpoint).netloc

    class Handler(_Handler):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True
        Handler.upstream, Handler.counter = upstream, CountedServer(server, proxy.server_port)
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield Handler.counter
        finally:
            proxy.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    upstream: str
    counter: CountedServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._link = http.client.HTTPConnection(self.upstream, timeout=60)

    def finish(self) -> None:
        self._link.close()
        super().finish()

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.counter.saw(*_named(self.command, self.path, self.headers.get("If-None-Match")))
        link = self._link
        link.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _HOP:
                link.putheader(name, value)
        link.endheaders(body or None)
        answer = link.getresponse()
        data = answer.read()
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP and name.lower() != "content-length":
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        if length is not None:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815  the base class looks for these names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Say nothing."""


def _named(verb: str, target: str, if_none_match: str | None) -> tuple[str, str]:
    """The kind of a request and the key it is about."""
    parts = urlsplit(target)
    asked = parse_qs(parts.query, keep_blank_values=True)
    key = unquote(parts.path).lstrip("/").partition("/")[2]
    if "list-type" in asked:
        return "list", asked.get("prefix", [""])[0]
    if "uploads" in asked or "uploadId" in asked:
        return "upload", key
    if verb == "DELETE" or "delete" in asked:
        return "delete", key
    if verb == "PUT":
        return "put_if_absent" if if_none_match == "*" else "put", key
    return verb.lower(), key
