"""Kernels that are compiled aside, because nobody should wait for them.

Where there is another way to an answer, a kernel that takes a minute to compile must not hold up the step that first asks for it. So a
process of its own compiles it, at a low priority, and puts the machine code where kernels are kept; until it is there the other way is taken.
The process ends with this one, or when it is done.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from threading import Lock, Thread
from typing import Any

import numba

from headwater.base import events

__all__ = ["is_loaded", "is_ready", "types_of"]

# What the process does: it reads who is asked for, and ends when the one who asked is gone.
_PROGRAM = (
    "import pickle, sys; "
    "sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from headwater.kernels import aside; "
    "aside._compile_asked()"
)
_NICE = 10


def is_loaded(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Is there machine code for such arguments in this process? Loads it, if it is kept.

    >>> import numpy as np
    >>> from headwater.kernels.hash import hash_rows
    >>> rows, nothing = np.zeros((1, 2), np.int64), np.zeros((0, 3), np.int64)
    >>> len(hash_rows(rows, nothing)), is_loaded(hash_rows, (rows, nothing))
    (1, True)
    """
    types = types_of(arguments)
    if types in kernel.overloads:
        return True
    if not kernel._cache.has_code(types, kernel.targetctx):
        return False
    kernel.compile(types)  # which loads it
    return True


def is_ready(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """The same; and where there is none, have it compiled, so that it is ready at some later time.

    If it cannot be compiled, it never is.
    """
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
    with _lock:
        compiling = _compiling.get(name)
        if compiling is None:
            if is_loaded(kernel, arguments):
                return True
            _compiling[name] = _started(kernel, types_of(arguments))
            return False
        if isinstance(compiling, bool):
            return compiling
        code = compiling.poll()
        if code is None:
            return False
        _compiling[name] = found = code == 0 and is_loaded(kernel, arguments)
        if not found:
            events.notice(f"kernel {name} could not be compiled aside (exit {code}); what it does is done without it")
        return found


_lock = Lock()
_compiling: dict[str, subprocess.Popen[bytes] | bool] = {}
"""By name: the process, and when it has ended, whether the kernel can be used."""


def types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the compiler calls the types of arguments."""
    return tuple(numba.typeof(a) for a in arguments)


def _started(kernel: Any, types: tuple[Any, ...]) -> subprocess.Popen[bytes] | bool:
    """A process that compiles; False if there can be none, as where Python is a part of another program."""
    if not sys.executable or getattr(sys, "frozen", False):
        return False
    asked = pickle.dumps(sys.path) + pickle.dumps((kernel.py_func.__module__, kernel.py_func.__qualname__, types))
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        process.stdin.write(asked)
        process.stdin.flush()  # and it stays open: its end tells the process that this one is gone
    except OSError:
        return False
    return process


def _forget() -> None:
    """In a process that was forked: what is being compiled is its parent's affair."""
    global _lock
    _lock = Lock()
    _compiling.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _stop() -> None:
    """End what is still being compiled."""
    for process in _compiling.values():
        if not isinstance(process, bool) and process.poll() is None:
            process.kill()
            process.wait()


def _compile_asked() -> None:
    """Compile what is asked for on the standard input."""
    module, name, types = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by `_started`
    Thread(target=_end_with_input, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    getattr(sys.modules.get(module) or __import__(module, fromlist=[name]), name).compile(types)


def _end_with_input() -> None:
    # Not by the buffered reader: a thread that waits in it may not be there when Python ends.
    while os.read(0, 1024):
        pass
    os._exit(1)
