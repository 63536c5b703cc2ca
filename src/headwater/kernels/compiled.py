"""How kernels are compiled.

`kernel` is the decorator for what Python calls: loaded from where code is kept (`code_cache`) at the first call, or
compiled by another process (`compiler`), running without the GIL. Of several programs that want the same kernel at the
same time one compiles it; the others wait, say so, and load it. A program that had to wait for one kernel has the
others compiled in the background. `inlined` is for the small functions kernels share, `shared` for those that are
better called than repeated; neither can be called from Python.

numba compiles a function again for every constant that is given to it. Here it is compiled once: what a constant is
good for, the optimiser finds out where the function is used.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import unliteral

from headwater.base import events
from headwater.kernels.code_cache import KernelCache, cache_folder
from headwater.kernels.compile_time import compiling

__all__ = ["inlined", "kernel", "kernels", "shared"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

kernels: dict[str, Any] = {}
"""The kernels of the modules that have been imported, by module and name: ``consolidate.consolidate``."""

compiles_here = False
"""Whether this process compiles kernels itself, because it is there for that."""

_announced = False


def kernel(function: _Function) -> _Function:
    """Compile a function for callers in Python: cached, without the GIL, divisions as in C."""
    compiled: Any = _for_all_constants(numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function))
    compiled._cache = KernelCache(function)
    name, compile_ = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}", compiled.compile
    kernels[name] = compiled

    def load_or_compile(signature: Any) -> Any:
        # The lock of this process comes first: who waits for a file must not be who others here wait for.
        with global_compiler_lock:
            if not compiled._cache.has_code(signature, compiled.targetctx):
                with compiling():
                    if not compiles_here:
                        _compile_elsewhere(name)
                    with _locked(_lock_of(name)):
                        return compile_(signature)
            return compile_(signature)  # which loads it

    compiled.compile = load_or_compile
    compiled.name = name
    found: _Function = compiled
    return found


def _compile_elsewhere(name: str) -> None:
    """Have a kernel compiled by another process, and wait; where that is not possible, this one will have to do it."""
    from headwater.kernels.compiler import compilers

    _announce(name)
    done = compilers().compile(name)
    compilers().compile_later(kernels)
    done.result()


def _announce(name: str) -> None:
    """Say once per process that compiling has begun, and each time that somebody else is at it: it is long work."""
    global _announced
    with _try_locked(_lock_of(name)) as is_free:
        if not is_free:
            events.notice(f"waiting for kernel {name}, which another program is compiling")
        elif not _announced:
            _announced = True
            events.notice("compiling kernels, once on this machine (`headwater warm` compiles all of them)")


def _lock_of(name: str) -> Path:
    return cache_folder() / f"{name}.lock"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait for the file's lock; where there are no locks, do without."""
    with _opened(path) as fd:
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield


@contextmanager
def _try_locked(path: Path) -> Iterator[bool]:
    """Whether nobody else has the file's lock; it is released at once."""
    with _opened(path) as fd:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass
        yield True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = -1
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield fd
    finally:
        if fd >= 0:
            os.close(fd)


def inlined(function: _Function) -> _Function:
    """Compile a small function for use in kernels; the optimiser puts it into its callers."""
    return _part(function, forceinline=True)


def shared(function: _Function) -> _Function:
    """Compile a function for use in kernels, as a function: for what is long or seldom needed."""
    return _part(function)


def _part(function: _Function, **options: bool) -> _Function:
    """Compile what only kernels call: without the ways in from Python and from C,
    which take as long as a small function itself.
    """
    options |= {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    found: _Function = _for_all_constants(numba.njit(error_model="numpy", **options)(function))
    return found


def _for_all_constants(compiled: Any) -> Any:
    template = compiled.get_call_template

    def of_types_alone(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        return template(tuple(map(unliteral, args)), {name: unliteral(given) for name, given in kws.items()})

    compiled.get_call_template = of_types_alone
    return compiled
