"""Machine code that comes with the package is loaded by an installation that fits it, and by no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.kernels.code_cache import shipping_level
from headwater.kernels.ship import ship

_PROGRAM = """
import numpy as np
from headwater.kernels.hash import hash_rows
rows, parts = np.arange(6).reshape(3, 2), np.array([[0, 1, -1], [1, 0, -1]])
print(hash_rows(rows, parts).tolist(), sum(hash_rows.stats.cache_hits.values()))
"""

pytestmark = pytest.mark.skipif(shipping_level() is None, reason="nothing is shipped for this architecture")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the code of one kernel."""
    root = tmp_path_factory.mktemp("installation")
    ignored = shutil.ignore_patterns("__pycache__", "_shipped")
    shutil.copytree(Path(headwater.__file__).parent, root / "headwater", ignore=ignored)
    assert ship(root / "headwater" / "kernels", ["hash.hash_rows"]) == 1
    return root


def _run(package: Path, cache: Path) -> tuple[str, str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(package)}
    environment.pop("NUMBA_CACHE_DIR", None)
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return run.stdout, run.stderr


@pytest.mark.long
def test_shipped_code_is_loaded_and_nothing_is_compiled(package: Path, tmp_path: Path) -> None:
    out, err = _run(package, tmp_path)
    assert "compiling" not in err and not list(tmp_path.rglob("*.nbc"))
    from headwater.kernels.hash import hash_rows

    np = pytest.importorskip("numpy")
    here = hash_rows(np.arange(6).reshape(3, 2), np.array([[0, 1, -1], [1, 0, -1]]))
    assert out == f"{here.tolist()} 1\n", "the same answer as code for this very processor gives"


@pytest.mark.long
def test_other_sources_do_not_load_it(package: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(package, other)
    with (other / "headwater" / "kernels" / "memory.py").open("a") as file:
        file.write("# another source\n")
    out, err = _run(other, tmp_path / "cache")
    assert "compiling kernels" in err and list((tmp_path / "cache").rglob("hash.hash_rows-*.nbc"))
    assert out == _run(package, tmp_path / "none")[0]
