"""What the tests of the benchmarks share."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

__all__ = ["Refused"]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a benchmark with arguments that it refuses, and give what it says. It measures nothing then, so it needs no process of its own."""

    def run(name: str, *arguments: str) -> str:
        script = str(BENCHMARKS / name)
        monkeypatch.syspath_prepend(str(BENCHMARKS))
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(script, run_name="__main__")
        assert ended.value.code == 2
        return capsys.readouterr().err

    return run
