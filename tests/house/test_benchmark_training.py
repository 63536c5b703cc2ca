"""The benchmark of training sets runs at a size of seconds, and its two ways to an answer agree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_it_runs_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    small = ("--labels", "4000", "--features", "20000", "--beside", "2", "--rounds", "1", "--folder", str(tmp_path))
    command = [sys.executable, str(ROOT / "benchmarks" / "training.py"), *small, "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    assert set(figures["beside"]["samples"]) == {"known at", "Spark SQL"}
    assert 0 < figures["beside"]["met"] < 2_000
    assert set(figures["large"]) >= {"known at", "event time alone"}
    assert figures["large"]["known at"]["mb"]["driver"] > 0
    assert list(tmp_path.glob("headwater-training-*")) == []
