"""A test that fails half-way may leave processes behind, which write into folders, hold locks and take processor time of others.

Processes that are started by the test itself, and not by a fixture that ends them, are noted; those that still run when the test and its
fixtures are over are killed. What is started once and used by later tests is spared: Spark's JVM and the compilers of kernels.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Generator
from typing import Any

import pytest

__all__ = ["Leftovers"]

_SHARED = ("spark-submit", "headwater.kernels.compiler")


class Leftovers:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[Any]] = []
        self._in_call = False
        self._start: Callable[..., None] = subprocess.Popen.__init__

    def pytest_sessionstart(self) -> None:
        def start(process: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
            self._start(process, *arguments, **options)
            if self._in_call:
                self._started.append(process)

        subprocess.Popen.__init__ = start  # type: ignore[method-assign, assignment]

    def pytest_sessionfinish(self) -> None:
        subprocess.Popen.__init__ = self._start  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None]:
        self._in_call = True
        try:
            yield
        finally:
            self._in_call = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None]:
        try:
            yield
        finally:
            for process in self._started:
                if process.poll() is None and not _is_shared(process):
                    process.kill()
                    process.wait()
            self._started.clear()


def _is_shared(process: subprocess.Popen[Any]) -> bool:
    return any(name in str(process.args) for name in _SHARED)
