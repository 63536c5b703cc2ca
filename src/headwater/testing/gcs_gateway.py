"""Google's XML interface in front of fake-gcs-server, which writes by the JSON interface only.

obstore (and with it delta-rs and Headwater) puts objects by the XML interface of Google Cloud Storage; fake-gcs-server
knows the uploads of the JSON one. This gateway on the loopback interface says each XML upload in JSON, and passes
everything else on. It decides nothing about objects: ``x-goog-if-generation-match`` becomes ``ifGenerationMatch``, and
fake-gcs-server answers whether the object was there. A multipart upload is one JSON upload of its parts, when it is
completed.

It answers two things that the emulator does not look at, as the service would: requests without the token of the server
are refused (401), and a bucket that is not there is said to be missing (404, ``NoSuchBucket``).
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

__all__ = ["Gateway", "gateway"]

_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host"}
_PART = re.compile(r"<PartNumber>(\d+)</PartNumber>")
_ERROR = "<?xml version='1.0'?><Error><Code>%s</Code><Message>%s</Message></Error>"
_NO_BUCKET = (_ERROR % ("NoSuchBucket", "The specified bucket does not exist.")).encode()
_DENIED = (_ERROR % ("AuthenticationRequired", "Authentication required.")).encode()


class Gateway:
    """Where the gateway is, whom it lets through, and what it was asked."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.upstream = ""
        """fake-gcs-server, as host:port."""
        self.ignores_conditions = False
        """Set it to be a service that takes conditional puts and ignores the condition."""
        self.headers: list[dict[str, str]] = []
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = itertools.count(1)
        self.endpoint = ""

    def lets_through(self, authorization: str) -> bool:
        """Whether a request has a token that an account with the server's name has signed."""
        token = authorization.removeprefix("Bearer ").split(".")
        with contextlib.suppress(ValueError, IndexError):
            claims = json.loads(base64.urlsafe_b64decode(token[1] + "=" * (-len(token[1]) % 4)))
            return bool(claims["iss"] == self.issuer)
        return False


@contextmanager
def gateway(issuer: str) -> Iterator[Gateway]:
    """A gateway for the tokens of one service account; it ends with the block. Its ``upstream`` is set afterwards."""

    class Handler(_Handler):
        gate = Gateway(issuer)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Handler.gate.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield Handler.gate
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    gate: Gateway
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._link = http.client.HTTPConnection(self.gate.upstream, timeout=60)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a client that gives up an upload just goes
            super().handle()

    def finish(self) -> None:
        self._link.close()
        super().finish()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.gate.headers.append({name.lower(): value for name, value in self.headers.items()})
        if not self.gate.lets_through(self.headers.get("Authorization", "")):
            self._answer(401, _DENIED)
            return
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, key = parts.path.lstrip("/").partition("/")
        if self.command == "PUT" and "uploadId" in asked:
            self.gate.uploads[asked["uploadId"][0]][int(asked["partNumber"][0])] = body
            self._answer(200, b"", {"ETag": f'"{asked["partNumber"][0]}"'})
        elif self.command == "PUT":
            self._upload(bucket, key, body, self.headers.get("x-goog-if-generation-match"))
        elif self.command == "POST" and "uploads" in asked:
            upload = str(next(self.gate.numbers))
            self.gate.uploads[upload] = {}
            told = f"<Bucket>{bucket}</Bucket><Key>k</Key><UploadId>{upload}</UploadId>"
            self._answer(200, f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>".encode())
        elif self.command == "POST" and "uploadId" in asked:
            held = self.gate.uploads.pop(asked["uploadId"][0])
            whole = b"".join(held[int(n)] for n in _PART.findall(body.decode()))
            self._upload(bucket, key, whole, self.headers.get("x-goog-if-generation-match"), multipart=True)
        elif self.command == "DELETE" and "uploadId" in asked:
            self.gate.uploads.pop(asked["uploadId"][0], None)
            self._answer(204, b"")
        else:
            self._pass(bucket, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815  the base class looks for these names

    def _upload(self, bucket: str, key: str, body: bytes, condition: str | None, *, multipart: bool = False) -> None:
        query = f"uploadType=media&name={quote(unquote(key), safe='')}"
        if condition is not None and not self.gate.ignores_conditions:
            query += f"&ifGenerationMatch={condition}"
        status, _, data = self._ask("POST", f"/upload/storage/v1/b/{bucket}/o?{query}", body)
        if status != 200:
            self._answer(*((404, _NO_BUCKET) if not self._has(bucket) else (status, data)))
            return
        made = json.loads(data)
        tag = f'"{made["etag"].strip(chr(34))}"'
        told = f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>".encode()
        self._answer(200, told if multipart else b"", {"ETag": tag, "x-goog-generation": str(made["generation"])})

    def _pass(self, bucket: str, body: bytes) -> None:
        status, headers, data = self._ask(self.command, self.path, body)
        if status in (404, 500) and not self._has(bucket):
            self._answer(404, _NO_BUCKET)
            return
        self._answer(status, data, headers)

    def _has(self, bucket: str) -> bool:
        return self._ask("GET", f"/storage/v1/b/{bucket}", b"")[0] == 200

    def _ask(self, verb: str, target: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP | {"content-length"}}
        self._link.request(verb, target, body=body, headers=kept | {"Content-Length": str(len(body))})
        answer = self._link.getresponse()
        data = answer.read()
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
        return answer.status, headers, data

    def _answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            if name.lower() != "content-length":
                self.send_header(name, value)
        told = next((v for n, v in (headers or {}).items() if n.lower() == "content-length"), None)
        self.send_header("Content-Length", told if self.command == "HEAD" and told is not None else str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Say nothing."""
