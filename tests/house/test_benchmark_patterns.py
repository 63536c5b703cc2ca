"""The benchmark of row patterns runs at a size of seconds, and tells wrong answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_all_patterns_run_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    small = ("--rows", "3000", "--rounds", "1", "--json", str(out))
    command = [sys.executable, str(ROOT / "benchmarks" / "patterns.py"), *small]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["patterns"]
    assert list(figures["figures"]) == ["chain", "valley", "jump"] if "figures" in figures else list(figures)
    assert "target" not in done.stdout  # of figures at full size only


def test_loops_say_what_the_patterns_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import patterns  # type: ignore[import-not-found]

    import headwater as hw

    rows = patterns.ticks(6_000)
    lake = hw.connect(tmp_path)
    lake.write("ticks", rows)
    for sql, loop in (
        (patterns.CHAIN, patterns.loop_chain),
        (patterns.VALLEY, patterns.loop_valley),
        (patterns.JUMP, patterns.loop_jump),
    ):
        found, wanted = patterns.in_order(lake.sql(sql).to_arrow()), patterns.in_order(loop(rows))
        assert found.num_rows > 50 and found.equals(wanted)
        assert not found.equals(patterns.in_order(loop(rows.slice(600))))
