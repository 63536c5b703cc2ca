"""Kernels that are compiled by another process: ready some time later, and never longer than the program lives."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S, wait_until

from headwater.kernels import aside, compiler
from headwater.kernels.compiler import Compilers

_BEGIN = """
import time
import numpy as np
from headwater.kernels.aside import is_loaded, is_ready
from headwater.kernels.hash import hash_rows
arguments = np.arange(6).reshape(3, 2), np.zeros((0, 3), np.int64)
assert not is_loaded(hash_rows)
assert not is_ready(hash_rows)
"""
_WAITS = (
    _BEGIN
    + """
until = time.monotonic() + 580
while not is_ready(hash_rows):
    assert time.monotonic() < until
    time.sleep(0.05)
assert len(hash_rows(*arguments)) == 3
print(sum(hash_rows.stats.cache_misses.values()), sum(hash_rows.stats.cache_hits.values()), flush=True)
"""
)
_STAYS = _BEGIN + "print('begun', flush=True); time.sleep(600)"
_LEAVES = _BEGIN + "print('begun', flush=True)"


def _run(program: str, tmp_path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_kernel_is_compiled_by_another_process_and_loaded(tmp_path: Path) -> None:
    process = _run(_WAITS, tmp_path)
    said, _ = process.communicate(timeout=600)
    assert (process.returncode, said.split()) == (0, ["0", "1"])


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs Linux")
@pytest.mark.parametrize("program", [_STAYS, _LEAVES])
def test_the_compiler_ends_with_the_program(program: str, tmp_path: Path) -> None:
    process = _run(program, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    if program is _STAYS:
        wait_until(lambda: len(_compilers(tmp_path)) == 1 or bool(list(tmp_path.rglob("*.nbc"))), "a compiler")
        process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not _compilers(tmp_path), "the end of the compiler")


def _compilers(tmp_path: Path) -> list[str]:
    """Processes that compile for this test."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            said = (one / "cmdline").read_bytes().split(b"\0") + (one / "environ").read_bytes().split(b"\0")
            if compiler.__name__.encode() in said and f"XDG_CACHE_HOME={tmp_path}".encode() in said:
                found.append(one.name)
    return found


def test_what_cannot_be_started_is_never_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(compiler, "_ours", Compilers())
    monkeypatch.setattr(aside, "is_loaded", lambda _: False)
    from headwater.kernels.hash import hash_rows

    assert not aside.is_ready(hash_rows)
    assert not aside.is_ready(hash_rows)
    assert Compilers().compile("hash.hash_rows").result(PATIENCE_S) == "no process could be started"


@pytest.mark.long
def test_a_kernel_that_is_none_is_an_answer(tmp_path: Path) -> None:
    processes = Compilers(environment={"NUMBA_CACHE_DIR": str(tmp_path)})
    try:
        problem = processes.compile("hash.nothing").result(PATIENCE_S)
        assert problem is not None and problem.startswith("KeyError")
    finally:
        processes.close()
