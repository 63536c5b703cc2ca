"""The benchmark of online tables runs at a size of seconds, and checks what everybody answers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_everybody_is_asked_and_answers_alike(tmp_path: Path) -> None:
    sizes = ["--rows", "20000", "--requests", "20", "--seconds", "0.2", "--folder", str(tmp_path)]
    command = [sys.executable, str(ROOT / "benchmarks" / "serving.py"), *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    titles = [
        line for line in done.stdout.splitlines() if "keys" in line and ("to numpy" in line or "to pandas" in line)
    ]
    assert len(titles) == 9, titles
    assert "a string and two floats, to Arrow" in done.stdout and "80." in done.stdout
    assert done.stdout.count("ours, 2 workers") == 2
    assert list(tmp_path.iterdir()) == []
