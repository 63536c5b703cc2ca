"""The benchmark of views on Spark runs at a size of seconds, and says what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Refused

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_it_runs_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    small = ("--rows", "20000", "--rounds", "1", "--shares", "0.01", "--json", str(out))
    script = str(ROOT / "benchmarks" / "views_spark.py")
    done = subprocess.run([sys.executable, script, *small], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["sections"]
    assert list(figures) == ["build", "curve", "state"]
    assert set(figures["build"]) == {"spark sql", "built by spark", "local"}
    assert set(figures["curve"]["0.01"]) == {"query", "spark", "local"}
    assert list(figures["state"]) == ["1250", "5000", "20000"]


def test_unknown_sections_are_refused(refused: Refused) -> None:
    assert "there is no `spoon`; there are: " in refused("views_spark.py", "--sections", "spoon")
