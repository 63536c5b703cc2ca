"""Google Cloud Storage for tests: fake-gcs-server on the loopback interface.

fake-gcs-server is a Go module (`server_tools`). It keeps objects with their generations and decides put-if-absent; a
gateway in front of it speaks the interface that obstore uses (`gcs_gateway`). Requests are signed as with the service:
the options name a key file of a service account, whose key is made for the server.

>>> with serve_gcs() as gcs:  # doctest: +SKIP
...     lake = hw.connect(gcs.url("lake"), storage_options=gcs.options)
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.base.errors import SetupError
from headwater.testing.gcs_gateway import Gateway, gateway
from headwater.testing.guarded_process import free_ports, start_guarded
from headwater.testing.object_server import ObjectServer, running
from headwater.testing.server_tools import fake_gcs_server

__all__ = ["GcsServer", "serve_gcs"]

_ISSUER = "headwater@tests.iam.gserviceaccount.com"


class GcsServer(ObjectServer):
    """A running fake-gcs-server with one bucket, behind its gateway."""

    scheme = "gs"
    service = "Google Cloud"

    def __init__(self, gate: Gateway, bucket: str, key: str, folder: Path) -> None:
        self.gate, self._key, self._folder = gate, key, folder
        secret = key.replace("-----BEGIN PRIVATE KEY-----", "").strip().splitlines()[0]
        super().__init__(gate.endpoint, bucket, self._options("key", _ISSUER, gate.endpoint), secret)

    def with_secret(self, secret: str) -> dict[str, str]:
        return self._options("wrong", f"{secret}@tests.iam.gserviceaccount.com", self.endpoint)

    def with_endpoint(self, endpoint: str) -> dict[str, str]:
        return self._options(f"at-{endpoint.rpartition(':')[2]}", _ISSUER, endpoint)

    def _options(self, name: str, issuer: str, endpoint: str) -> dict[str, str]:
        path = self._folder / f"{name}.json"
        content = {"type": "service_account", "client_email": issuer, "private_key": self._key, "private_key_id": "1"}
        path.write_text(json.dumps({**content, "gcs_base_url": endpoint}))
        return {"GOOGLE_SERVICE_ACCOUNT": str(path), "allow_http": "true"}

    def make_bucket(self) -> None:
        """Make the bucket; one that is there is fine."""
        request = urllib.request.Request(f"http://{self.gate.upstream}/storage/v1/b", method="POST")
        request.add_header("Content-Type", "application/json")
        try:
            wanted = json.dumps({"name": self.bucket}).encode()
            urllib.request.urlopen(request, wanted, timeout=10).close()  # noqa: S310
        except urllib.error.HTTPError as e:
            with e:
                if e.code != 409:
                    raise


@contextmanager
def serve_gcs(bucket: str = "lake") -> Iterator[GcsServer]:
    """Start an emulator with an empty bucket; it ends with the block, and its data with it.

    Raises
    ------
    SetupError
        Go or OpenSSL is not there (E7012), fake-gcs-server was not installed (E7013), or does not come up (E7004).
    """
    command, key = fake_gcs_server(), _make_key()
    with tempfile.TemporaryDirectory(prefix="hw-gcs-key-") as folder, gateway(_ISSUER) as gate:

        def start(data: Path) -> tuple[GcsServer, subprocess.Popen[bytes]]:
            (chosen,) = free_ports(1)
            gate.upstream = f"127.0.0.1:{chosen}"
            arguments = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(chosen)]
            arguments += ["-public-host", gate.upstream, "-log-level", "warn"]
            return GcsServer(gate, bucket, key, Path(folder)), start_guarded([*command, *arguments], data)

        with running(start, GcsServer.make_bucket) as server:
            yield server


def _make_key() -> str:
    """A private key for the account of one server."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise SetupError.no_tool("openssl", "the Google Cloud server")
    made = [openssl, "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
    return subprocess.run(made, capture_output=True, text=True, check=True).stdout
