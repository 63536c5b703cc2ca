"""Emulators of cloud storage, installed once per machine, in the versions that the tests are known to pass with.

They come from public registries: Azurite from npm, fake-gcs-server as a Go module. They lie in
``$XDG_CACHE_HOME/headwater/servers/<name>-<version>`` (``~/.cache`` by default). A folder appears there in one step,
when everything is in it; of several processes one installs, and the others wait.

``python -m headwater.testing.server_tools`` installs all of them, which takes minutes; `is_installed` asks without
installing, for those who can do without an emulator.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from headwater.base.errors import SetupError

__all__ = ["AZURITE_VERSION", "FAKE_GCS_VERSION", "azurite", "fake_gcs_server", "is_installed"]

AZURITE_VERSION = "3.37.0"
FAKE_GCS_VERSION = "1.56.1"
_SECONDS = 900
_FOLDERS = {"azure": f"azurite-{AZURITE_VERSION}", "gcs": f"fake-gcs-server-{FAKE_GCS_VERSION}"}


def is_installed(cloud: str) -> bool:
    """Whether the emulator of ``azure`` or ``gcs`` is on this machine already."""
    return (_cache() / _FOLDERS[cloud]).exists()


def azurite() -> list[str]:
    """The command that starts Azurite's blob service."""
    node, npm = _tool("node", "Azurite"), _tool("npm", "Azurite")

    def install(folder: Path) -> None:
        (folder / "package.json").write_text('{"private": true}')
        wanted = f"azurite@{AZURITE_VERSION}"
        _run([npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", wanted], folder, "Azurite")

    folder = _installed(_FOLDERS["azure"], install)
    return [node, str(folder / "node_modules/azurite/dist/src/blob/main.js")]


def fake_gcs_server() -> list[str]:
    """The command that starts fake-gcs-server."""

    def install(folder: Path) -> None:
        wanted = f"github.com/fsouza/fake-gcs-server@v{FAKE_GCS_VERSION}"
        environment = {**os.environ, "GOBIN": str(folder)}
        _run([_tool("go", "fake-gcs-server"), "install", wanted], folder, "fake-gcs-server", environment)

    return [str(_installed(_FOLDERS["gcs"], install) / "fake-gcs-server")]


def _tool(name: str, what: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SetupError.no_tool(name, what)
    return found


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "headwater" / "servers"


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    cache = _cache()
    folder = cache / name
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix=f".{name}-") as beside:
                made = Path(beside) / "made"
                made.mkdir()
                install(made)
                made.rename(folder)
    return folder


def _run(command: list[str], folder: Path, tool: str, environment: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SetupError.tool_not_installed(tool, f"not after {_SECONDS} s") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise SetupError.tool_not_installed(tool, said[-1] if said else f"exit code {done.returncode}")


def _main() -> int:
    """Install what is missing; how many could not be installed."""
    failures = 0
    for install in (azurite, fake_gcs_server):
        try:
            install()
        except SetupError as e:
            print(e, file=sys.stderr)
            failures += 1
    return failures


if __name__ == "__main__":
    sys.exit(_main())
