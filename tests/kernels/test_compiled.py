"""Kernels that several processes want at the same time are compiled once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import numpy as np
from headwater.kernels.hash import hash_rows
found = hash_rows(np.arange(6).reshape(3, 2), np.zeros((0, 3), np.int64))
assert len(found) == 3
print(sum(hash_rows.stats.cache_misses.values()))
"""


def test_one_of_several_processes_compiles(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    started = [
        subprocess.Popen([sys.executable, "-c", _PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=120)[0].split() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sorted(said) == [["0"], ["0"], ["1"]]
