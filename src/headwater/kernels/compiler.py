"""Compiling kernels in processes of their own.

Compiling takes seconds per kernel, holds the GIL, and numba repeats itself: it optimises and emits a function once for
itself and once more in each function that calls it, level by level, though only the outermost one is ever run. A
process that does nothing but compile can leave that out (`compiler_process`) without changing numba for anybody else,
runs beside the program, and several can share the work.

`compilers()` are the processes of this program: one for kernels that somebody waits for, the others, at a low priority,
for those that will be wanted later. They leave the machine code where kernels are kept (`code_cache`), end when they
have had nothing to do for a while, and never outlive the program.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress

__all__ = ["Compilers", "compilers"]

_NICE = 10
_IDLE_SECONDS = 20.0


class Compilers:
    """Processes that compile kernels by name."""

    def __init__(
        self, *, jobs: int | None = None, environment: Mapping[str, str] | None = None, nice: int = _NICE
    ) -> None:
        self._background = max(1, (jobs or os.cpu_count() or 1) - 1)
        self._nice = nice
        self._environment = environment or {}
        self._changed = threading.Condition()
        self._asked: dict[str, Future[str | None]] = {}
        self._urgent: deque[str] = deque()
        self._later: deque[str] = deque()
        self._running: dict[bool, int] = {True: 0, False: 0}
        self._processes: set[subprocess.Popen[str]] = set()

    def compile(self, name: str) -> Future[str | None]:
        """Compile a kernel that somebody waits for; the result is what went wrong, or None."""
        with self._changed:
            found = self._asked.get(name)
            if found is None:
                found = self._asked[name] = Future()
            elif name in self._later:
                self._later.remove(name)
            else:
                return found
            self._urgent.append(name)
            self._staff(urgent=True)
            return found

    def compile_later(self, names: Iterable[str]) -> list[Future[str | None]]:
        """Compile kernels when there is time; results as those of `compile`."""
        with self._changed:
            new = [name for name in names if name not in self._asked]
            for name in new:
                self._asked[name] = Future()
                self._later.append(name)
            for _ in new[: self._background]:
                self._staff(urgent=False)
            return [self._asked[name] for name in new]

    def close(self) -> None:
        """End the processes; what they have not compiled is not compiled."""
        with self._changed:
            self._urgent.clear()
            self._later.clear()
            for process in self._processes:
                process.kill()

    def _staff(self, *, urgent: bool) -> None:
        if self._running[urgent] < (1 if urgent else self._background):
            self._running[urgent] += 1
            threading.Thread(target=self._work, args=(urgent,), name="headwater-compiler", daemon=True).start()
        self._changed.notify_all()

    def _work(self, urgent: bool) -> None:
        process: subprocess.Popen[str] | None = None
        try:
            while (name := self._next(urgent)) is not None:
                problem: str | None = "no process could be started"
                with suppress(OSError):
                    if process is None or process.poll() is not None:
                        process = self._started(0 if urgent else self._nice)
                    problem = _answer(process, name)
                self._asked[name].set_result(problem)
        finally:
            if process is not None:
                self._processes.discard(process)
                _end(process)

    def _next(self, urgent: bool) -> str | None:
        """What to compile next; None, and one fewer at work, if there has been nothing for a while."""
        with self._changed:
            mine = self._urgent if urgent else self._later
            if not mine:
                self._changed.wait_for(lambda: len(mine) > 0, _IDLE_SECONDS)
            if mine:
                return mine.popleft()
            self._running[urgent] -= 1
            return None

    def _started(self, nice: int) -> subprocess.Popen[str]:
        if not sys.executable or getattr(sys, "frozen", False):
            raise OSError("Python is a part of another program")
        path = os.pathsep.join(filter(None, sys.path))
        process = subprocess.Popen(
            [sys.executable, "-m", f"{__name__}_process", str(nice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **self._environment, "PYTHONPATH": path},
        )
        self._processes.add(process)
        return process


def _answer(process: subprocess.Popen[str], name: str) -> str | None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    said = process.stdout.readline().strip()
    if said == name:
        return None
    return said.removeprefix("!").strip() or f"the compiler's process ended with {process.wait()}"


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


_ours: Compilers | None = None
_lock = threading.Lock()


def compilers() -> Compilers:
    """The processes of this program."""
    global _ours
    with _lock:
        if _ours is None:
            _ours = Compilers()
        return _ours


def _forget() -> None:
    """In a process that was forked: what is being compiled is its parent's affair."""
    global _ours, _lock
    _ours, _lock = None, threading.Lock()


@atexit.register
def _stop() -> None:
    if _ours is not None:
        _ours.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
