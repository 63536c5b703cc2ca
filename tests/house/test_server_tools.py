"""Emulators are installed in one step, once, and what is missing for that is said by name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.base.errors import SetupError
from headwater.testing import server_tools
from headwater.testing.gcs_server import serve_gcs
from headwater.testing.server_tools import azurite, fake_gcs_server, is_installed


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_missing_tools_are_named(tmp_path: Path) -> None:
    for install, missing in ((azurite, "node"), (fake_gcs_server, "go")):
        with pytest.raises(SetupError, match=f"needs `{missing}`") as caught:
            install()
        assert caught.value.code == "E7012"
    with pytest.raises(SetupError), serve_gcs():
        pass
    assert not list((tmp_path / "cache/headwater/servers").glob("fake-gcs-server-*[!k]"))


def test_a_registry_that_cannot_be_reached(tmp_path: Path) -> None:
    tool(tmp_path, "go", "echo 'module lookup failed' >&2; exit 1")
    for _ in range(2):
        with pytest.raises(SetupError, match="module lookup failed") as caught:
            fake_gcs_server()
        assert caught.value.code == "E7013", "what failed is tried again, and leaves no folder behind"


def test_one_of_many_installs(tmp_path: Path) -> None:
    assert not is_installed("gcs")
    tool(tmp_path, "go", f'echo once >> {tmp_path}/log; echo "$2" > "$GOBIN/fake-gcs-server"')
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: fake_gcs_server()[0], range(8)))
    assert is_installed("gcs") and not is_installed("azure")
    assert len(found) == 1 and (tmp_path / "log").read_text() == "once\n"
    wanted = f"github.com/fsouza/fake-gcs-server@v{server_tools.FAKE_GCS_VERSION}\n"
    assert Path(found.pop()).read_text() == wanted
