"""The benchmark of verifying runs at a size of seconds, both ways, and checks what they find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_views_are_verified_both_ways(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    sizes = ["--rows", "0", "--whole-rows", "30000", "--shapes", "filter,wrong", "--folder", str(tmp_path)]
    command = [sys.executable, str(ROOT / "benchmarks" / "verify.py"), *sizes, "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    assert list(figures) == ["filter 30000", "wrong 30000"]
    assert figures["filter 30000"]["digests"]["rows"] == 30_000
    assert figures["wrong 30000"]["digests"]["extra"] == figures["wrong 30000"]["whole"]["extra"] == 1
    assert all(one["peak_bytes"] > 0 < one["cpu_seconds"] for shape in figures.values() for one in shape.values())
    assert "of the memory" in done.stdout and [p.name for p in tmp_path.iterdir()] == ["figures.json"]
