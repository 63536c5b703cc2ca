"""What a failing test has started does not run beside the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_PLUGIN = """
from tests.leftovers import Leftovers

def pytest_configure(config):
    config.pluginmanager.register(Leftovers())
"""
_TESTS = """
import os, subprocess, sys
import pytest

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
left = []

@pytest.fixture(scope="module")
def shared():
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()

def test_that_fails(shared):
    left.append(subprocess.Popen(SLEEP))
    assert not left

def test_the_next(shared):
    assert left[0].returncode is not None
    assert shared.poll() is None, "what a fixture has started is the fixture's to end"
"""


@pytest.mark.long
def test_what_a_failing_test_leaves_is_ended(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_PLUGIN)
    (tmp_path / "test_two.py").write_text(_TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    # What is asked of this run, such as a file for its report, is not asked of that one.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
