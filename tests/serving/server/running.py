"""A server in a process of its own, as `headwater serve` runs it, and plain sockets to talk to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.waiting import PATIENCE_S, wait_until

__all__ = ["Answer", "RunningServer", "Wire", "serving"]

ARROW = "application/vnd.apache.arrow.stream"

_PROGRAM = """
import json, logging, sys
from headwater.base.storage import LocalStorage
from headwater.serving.server.backing import LakeTables
from headwater.serving.server.options import Limits, ServerOptions, Tls, Token
from headwater.serving.server.supervisor import Plan, Supervisor

logging.basicConfig(level=logging.INFO)
logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
given = json.loads(sys.argv[1])
options = given["options"]
options["tokens"] = tuple(Token.parse(*one) for one in options.get("tokens", ()))
options["limits"] = Limits(**options.get("limits", {}))
if "tls" in options:
    options["tls"] = Tls(*options["tls"])
plan = Plan(ServerOptions(port=0, **options), lambda: LakeTables(LocalStorage(given["folder"])), lambda: [])
ready = lambda url: print(json.dumps({"url": url}), flush=True)
sys.exit(Supervisor(plan, reload=lambda: plan, on_ready=ready).run())
"""


@dataclass
class Answer:
    """A response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes
    head: bytes = field(repr=False, default=b"")

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, *, has_body: bool = True) -> Answer:
        """The next response."""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        length = int(headers.get("content-length", "0")) if has_body else 0
        while len(rest) < length:
            self.buffer = b""
            self._more()
            rest += self.buffer
        self.buffer = rest[length:]
        return Answer(int(lines[0].split()[1]), headers, rest[:length], head)

    def _more(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise EOFError(f"the connection has ended after {self.buffer!r}")
        self.buffer += data

    def is_closed(self) -> bool:
        """Whether nothing more comes, now or later: waits for the end."""
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        self.send(request(method, path, body, **headers))
        return self.read(has_body=method != "HEAD")


def request(method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
    """A request as bytes; names of headers have underscores for dashes."""
    lines = [f"{method} {path} HTTP/1.1"]
    given = {"host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body is not None:
        given.setdefault("content-length", str(len(body)))
    lines += [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


class RunningServer:
    """A server that answers."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        self.port = int(url.rpartition(":")[2])

    def wire(self) -> Wire:
        return Wire(self.port)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Ask on a connection of its own."""
        with self.wire() as wire:
            return wire.ask(method, path, body, **headers)

    def fetch(self, table: str, keys: Any, query: str = "", **headers: str) -> Answer:
        """Fetch by JSON."""
        body = json.dumps({"keys": keys}).encode()
        return self.ask("POST", f"/v1/tables/{table}/fetch{query}", body, content_type="application/json", **headers)

    def children(self) -> list[int]:
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, check=False)
        return [int(one) for one in found.stdout.split()]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@contextmanager
def serving(folder: Path | str, **options: Any) -> Iterator[RunningServer]:
    """Serve the online tables of a folder."""
    given = json.dumps({"folder": str(folder), "options": options})
    with running([sys.executable, "-c", _PROGRAM, given]) as server:
        yield server


@contextmanager
def running(command: list[str], environment: Mapping[str, str] | None = None) -> Iterator[RunningServer]:
    """Start a server that writes its address to stdout as JSON."""
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.rstrip().endswith("}"):
                line = process.stdout.readline()
                assert line, f"the server ended with code {process.wait()}"
                text += line
            server = RunningServer(process, json.loads(text)["url"])
            yield server
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()


def wait_ready(server: RunningServer) -> None:
    wait_until(lambda: server.ask("GET", "/readyz").status == 200, "readiness")
