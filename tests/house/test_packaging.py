"""The lock files carry hashes and no hosts, and the package ships what it reads at run time."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "requirements" / "build.txt", ROOT / "requirements" / "dev.txt"]
OTHER_LOCKS = [ROOT / "requirements" / f"{name}.txt" for name in ("dbt", "feast", "spark-4.3")]


@pytest.mark.parametrize("lock", [*LOCKS, *OTHER_LOCKS], ids=lambda lock: lock.name)
def test_locks_have_hashes_and_no_hosts(lock: Path) -> None:
    text = lock.read_text()
    requirements = re.findall(r"^[a-z0-9].*", text, re.MULTILINE)
    assert requirements
    assert all(re.match(r"[a-z0-9._-]+==\S+ .*\\$", line) for line in requirements)
    assert text.count("==") >= len(requirements)
    assert text.count("--hash=sha256:") >= len(requirements)
    assert "://" not in text
    assert "index" not in text


def test_both_locks_agree() -> None:
    build, dev = (set(re.findall(r"^([a-z0-9._-]+==\S+)", lock.read_text(), re.MULTILINE)) for lock in LOCKS)
    assert build <= dev


def test_the_package_ships_its_files() -> None:
    package = resources.files("headwater")
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("spark", "log4j2.properties").is_file()
    assert package.joinpath("serving", "config", "schema.json").is_file()
