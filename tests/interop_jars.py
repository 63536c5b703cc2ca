"""The JARs of delta-spark, from the local Maven repository or fetched into it with ``mvn``.

On a new machine fetching takes minutes: ``python -m tests.interop_jars`` does it beside the first tests (see ``conftest.py``), and a test that needs
the JARs meanwhile waits for it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

VERSION = "4.4.0"
_REPOSITORY = Path.home() / ".m2" / "repository" / "io" / "delta"
_BESIDE = ("delta-storage", "delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog")


def artifact() -> str:
    """delta-spark is built for each minor version of Spark."""
    import pyspark

    return f"delta-spark_{'.'.join(pyspark.__version__.split('.')[:2])}_2.13"


def delta_jars() -> list[str]:
    """The JARs a session needs for ``format("delta")``; skips the test, with the reason, if they cannot be had."""
    name = artifact()
    with _alone():
        if not _jar(name).exists():
            _fetch(name)
    found = [_jar(n) for n in (name, *_BESIDE)]
    return [str(path) for path in found if path.exists()]


def fetch_beside() -> subprocess.Popen[bytes] | None:
    """Begin to fetch the JARs in another process, if they are not here."""
    if _jar(artifact()).exists() or shutil.which("mvn") is None:
        return None
    return subprocess.Popen(
        [sys.executable, "-m", "tests.interop_jars"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
    )


@contextmanager
def _alone() -> Iterator[None]:
    """Only one process fetches, and nobody takes a part of the JARs for all of them."""
    with Path(tempfile.gettempdir(), f"headwater-jars-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _jar(name: str) -> Path:
    return _REPOSITORY / name / VERSION / f"{name}-{VERSION}.jar"


def _fetch(name: str) -> None:
    if shutil.which("mvn") is None:
        pytest.skip(f"{name}-{VERSION}.jar is not in the local Maven repository, and mvn is not installed")
    command = ["mvn", "-q", "-B", "dependency:get", f"-Dartifact=io.delta:{name}:{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode or not _jar(name).exists():
        pytest.skip(f"mvn could not fetch io.delta:{name}:{VERSION}: {done.stdout.strip()[:200]}")


if __name__ == "__main__":
    delta_jars()
