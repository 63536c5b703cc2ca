"""The benchmark of a whole project runs at a size of seconds: what it measured was right, and all three ways to read saw every commit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_a_change_and_some_commits(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    sizes = ["--size", "S", "--commits", "3", "--folder", str(tmp_path), "--json", str(out)]
    command = [sys.executable, str(ROOT / "benchmarks" / "project.py"), *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    change, latency = figures["change"], figures["latency"]
    assert {one["mode"] for one in change.pop("building")["nodes"].values()} == {"full"}
    where = ("new process", "same process")
    assert list(change) == [f"{kind}, {one}" for kind in ("new payments", "corrections") for one in where]
    for found in change.values():
        modes = {node: one["mode"] for node, one in found["nodes"].items()}
        of_notes = {modes.pop(node) for node in ("cases", "case_search")}
        assert modes.pop("disputes") == "noop" and set(modes.values()) == {"incremental"}
        assert of_notes <= {"incremental", "noop"} and 40 < found["rows"] < 60 and found["ratio"] > 0 < found["cpu"]
    assert list(latency) == ["view", "search hit", "online answer"]
    assert all(0 < one["p50"] <= one["p99"] <= one["worst"] and one["commits"] == 3 for one in latency.values())
    assert "times less CPU" in done.stdout and [p.name for p in tmp_path.iterdir()] == ["figures.json"]
