"""Kernels that several programs want at the same time are compiled once; the code does not depend on where the package lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headwater

_PROGRAM = """
import numpy as np
from headwater.kernels.hash import hash_rows
found = hash_rows(np.arange(6).reshape(3, 2), np.zeros((0, 3), np.int64))
assert len(found) == 3
print(sum(hash_rows.stats.cache_misses.values()), sum(hash_rows.stats.cache_hits.values()))
"""


def _environment(cache: Path, **more: str) -> dict[str, str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), **more}
    environment.pop("NUMBA_CACHE_DIR", None)
    return environment


def _run(program: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=True
    )


def _codes(cache: Path, kernel: str) -> list[Path]:
    return list(cache.rglob(f"{kernel}-*.nbc"))


@pytest.mark.long
def test_one_of_several_programs_compiles(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env=_environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert [out.split() for out, _ in said] == [["0", "1"]] * 3, "each of them loads what one compiler has left"
    assert len(_codes(tmp_path, "hash.hash_rows")) == 1
    first = _codes(tmp_path, "hash.hash_rows")[0].stat()
    again = _run(_PROGRAM, _environment(tmp_path))
    assert again.stdout.split() == ["0", "1"] and "compiling" not in again.stderr
    assert _codes(tmp_path, "hash.hash_rows")[0].stat().st_mtime_ns == first.st_mtime_ns, "nobody compiled it again"


@pytest.mark.long
def test_an_installation_elsewhere_uses_the_same_code(tmp_path: Path) -> None:
    cache, other = tmp_path / "cache", tmp_path / "other"
    shutil.copytree(
        Path(headwater.__file__).parent, other / "headwater", ignore=shutil.ignore_patterns("__pycache__", "_shipped")
    )
    here = _run(_PROGRAM, _environment(cache))
    there = _run("import headwater; print(headwater.__file__)" + _PROGRAM, _environment(cache, PYTHONPATH=str(other)))
    assert "compiling kernels" in here.stderr, here
    assert there.stdout.split() == [str(other / "headwater" / "__init__.py"), "0", "1"], there
    assert "compiling" not in there.stderr


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "headwater").write_text("not a folder")
    program = "from headwater.kernels.code_cache import cache_folder; print(cache_folder())"
    run = _run(program, _environment(tmp_path))
    assert not run.stdout.startswith(str(tmp_path)), run
