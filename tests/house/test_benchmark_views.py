"""The benchmark of views runs at a size of seconds, and verifies the views it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Refused

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "views.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.long
def test_all_shapes_run_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run("--scale", "0.0005", "--rounds", "1", "--shares", "0.01,0.1", "--sections", "curve", "--json", str(out))
    assert done.returncode == 0, done.stderr
    curve = json.loads(out.read_text())["sections"]["curve"]
    shapes = ["filter", "group", "join and group", "distinct", "first three", "exists"]
    assert [name for name in shapes if set(curve[name]) == {"0.01", "0.1"}] == shapes
    assert curve["group"]["0.1"]["rows"] == 500
    assert curve["group"]["0.1"]["refresh"]["cpu_s"] > 0
    assert curve["group"]["0.1"]["duckdb_writing"]["median_s"] > 0
    assert "target" not in done.stdout  # of ratios at full size only


@pytest.mark.long
def test_first_loads_are_measured(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run("--scale", "0.0005", "--sections", "load", "--shapes", "group", "--rounds", "1", "--json", str(out))
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["sections"]["load"]["group"]
    assert 0 < figures["visible_s"] <= figures["complete_s"]
    assert figures["query_cpu_s"] > 0
    assert figures["memory_bytes"] >= 0
    assert "rows visible" in done.stdout


@pytest.mark.long
def test_state_and_memory_are_measured(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run("--scale", "0.001", "--sections", "state", "--shapes", "sessions", "--json", str(out))
    assert done.returncode == 0, done.stderr
    (figures,) = (v for k, v in json.loads(out.read_text())["sections"]["state"].items() if k == "sessions")
    assert 0 < figures["optimized"] < figures["changed"]
    assert figures["build_peak"] > 0
    assert "sessions" in done.stdout


def test_unknown_shapes_are_refused(refused: Refused) -> None:
    assert "there is no `spoon`; there are: filter," in refused("views.py", "--shapes", "spoon")
