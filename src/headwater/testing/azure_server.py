"""Azure's blob storage for tests: Azurite, Microsoft's emulator, on the loopback interface.

Azurite comes from npm (`server_tools`) and checks signatures and preconditions as the service does. It has no
hierarchical namespace and no ``dfs`` endpoint.

>>> with serve_azure() as azure:  # doctest: +SKIP
...     lake = hw.connect(azure.url("lake"), storage_options=azure.options)
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

from headwater.testing.guarded_process import free_ports, start_guarded
from headwater.testing.object_server import ObjectServer, running
from headwater.testing.server_tools import azurite

__all__ = ["AzureServer", "serve_azure"]

_ACCOUNT = "headwater"
_API = "2021-12-02"


class AzureServer(ObjectServer):
    """A running Azurite with one account and one container."""

    scheme = "az"
    service = "Azure"

    def __init__(self, endpoint: str, container: str, key: str) -> None:
        options = {
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": key,
            "AZURE_STORAGE_ENDPOINT": f"{endpoint}/{_ACCOUNT}",
            "allow_http": "true",
        }
        super().__init__(endpoint, container, options, key)
        self.account = _ACCOUNT

    def with_secret(self, secret: str) -> dict[str, str]:
        return {**self.options, "AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(secret.encode()).decode()}

    def with_endpoint(self, endpoint: str) -> dict[str, str]:
        return {**self.options, "AZURE_STORAGE_ENDPOINT": f"{endpoint}/{_ACCOUNT}"}

    def signature(self, rights: str = "racwdl", *, hours: float = 1) -> str:
        """A shared access signature of the container: the query string that `sas_token` takes."""
        until = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        # Rights, start, end, resource, policy, addresses, protocol, version, kind, and seven more that are empty.
        signed = [rights, "", until, f"/blob/{_ACCOUNT}/{self.bucket}", "", "", "", _API, "c", *[""] * 7]
        fields = {"sv": _API, "sr": "c", "sp": rights, "se": until, "sig": self._sign("\n".join(signed))}
        return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())

    def make_container(self) -> None:
        """Make the container; one that is there is fine."""
        date, path = formatdate(usegmt=True), f"/{_ACCOUNT}/{self.bucket}"
        headers = f"x-ms-date:{date}\nx-ms-version:{_API}"
        signed = f"PUT{chr(10) * 12}{headers}\n/{_ACCOUNT}{path}\nrestype:container"
        target = f"{self.endpoint}{path}?restype=container"
        request = urllib.request.Request(target, method="PUT")  # noqa: S310  (loopback)
        request.add_header("x-ms-date", date)
        request.add_header("x-ms-version", _API)
        request.add_header("Authorization", f"SharedKey {_ACCOUNT}:{self._sign(signed)}")
        try:
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
        except urllib.error.HTTPError as e:
            with e:
                if e.code != 409:
                    raise

    def _sign(self, text: str) -> str:
        digest = hmac.new(base64.b64decode(self.secret), text.encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()


@contextmanager
def serve_azure(container: str = "lake") -> Iterator[AzureServer]:
    """Start an emulator with an empty container; it ends with the block, and its data with it.

    Raises
    ------
    SetupError
        Node is not there (E7012), Azurite was not installed (E7013), or does not come up (E7004).
    """
    command = azurite()
    with running(lambda data: _start(command, data, container), AzureServer.make_container) as server:
        yield server


def _start(command: list[str], data: Path, container: str) -> tuple[AzureServer, subprocess.Popen[bytes]]:
    (port,) = free_ports(1)
    server = AzureServer(f"http://127.0.0.1:{port}", container, base64.b64encode(secrets.token_bytes(64)).decode())
    arguments = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(data), "--silent"]
    arguments += ["--disableTelemetry", "--skipApiVersionCheck", "--disableProductStyleUrl"]
    environment = {**os.environ, "AZURITE_ACCOUNTS": f"{_ACCOUNT}:{server.secret}"}
    return server, start_guarded([*command, *arguments], data, environment=environment)
