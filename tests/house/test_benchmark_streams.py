"""The benchmark of time series runs at a size of seconds, and all engines have the same answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Refused

ROOT = Path(__file__).parents[2]
GENERATOR = Path(sys.executable).with_name("tpchgen-cli")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "streams.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


FEW = ("--operators", "ema", "--queries", "q6")


@pytest.mark.spark
@pytest.mark.skipif(not GENERATOR.is_file(), reason="tpchgen-cli makes TPC-H's data")
@pytest.mark.parametrize("chosen", [FEW, pytest.param((), marks=pytest.mark.slow)], ids=["few", "all"])
def test_all_sections_run_small(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    out = tmp_path / "figures.json"
    small = ("--quotes", "2000", "--trades", "400", "--rows", "3000", "--scale", "0.001", "--rounds", "1")
    done = run(*small, *chosen, "--json", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["sections"]
    assert list(found) == ["asof", "operators", "tpch"]
    assert found["asof"]["answer"][0] == 400
    operators = {name: f for name, f in found["operators"].items() if name not in ("title", "notes")}
    assert len(operators) == (1 if chosen else 11)
    assert all({"ours", "Spark", "polars"} <= set(f["samples"]) for f in operators.values())
    assert {f["chosen"] for f in operators.values()} == {"blocks"}
    assert operators["ema"]["samples"]["ours"]["cpu_s"] > 0
    assert len(found["tpch"]["queries"]) + len(found["tpch"]["not expressible"]) == (1 if chosen else 22)
    assert "target" not in done.stdout  # of ratios at full size only


@pytest.mark.slow
@pytest.mark.spark
def test_a_peer_that_takes_too_long_is_told_so() -> None:
    small = ("--only", "operators", "--operators", "shift", "--rows", "3000", "--rounds", "2", "--limit", "0.001")
    done = run(*small)
    assert done.returncode == 0, done.stderr
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("shift")]
    assert line.count("over 0.001 s") == 3  # Spark, polars and DuckDB; tempo is not there
    ran = [text for text in done.stderr.splitlines() if text.startswith("shift: ")]
    assert ran == [
        "shift: ours, checked",
        "shift: Spark, checked",
        "shift: polars, checked",
        "shift: DuckDB, checked",
        "shift: ours, round 1 of 2",
        "shift: ours, round 2 of 2",
    ]


def test_unknown_sections_are_refused(refused: Refused) -> None:
    assert "there is no `spoon`; there are: asof," in refused("streams.py", "--only", "spoon")
