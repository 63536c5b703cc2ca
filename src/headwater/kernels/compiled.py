"""How kernels are compiled, and where the machine code is kept.

numba's own cache looks at the file of a function, not at the files of the functions it calls: after a change in one of those
it would go on with the old code. It also writes beside the source, which an installed package may not. So the cache is
a folder of the user's, named by a hash of all the kernels' sources and of numba's version: another source,
another folder.

`kernel` is the decorator for what Python calls: compiled at the first call, or loaded from the cache, running without the
GIL. Of several processes that want a kernel at the same time one compiles it, and the others wait and load it. `inlined` is for the small
functions kernels share, `shared` for those that are better called than repeated; neither can be called from Python.

numba compiles a function again for every constant that is given to it. Here it is compiled once: what a constant is good for, the
optimiser finds out where the function is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import unliteral

from headwater.base import events

__all__ = ["cache_folder", "inlined", "kernel", "shared"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NO_KERNELS = ("aside.py",)


def cache_folder() -> Path:
    """Where the compiled kernels of this version are kept.

    >>> cache_folder().name == cache_folder().name
    True
    """
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        if source.name in _NO_KERNELS:
            continue
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    root = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    folder = Path(root) / "headwater" / "kernels" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.gettempdir()) / f"headwater-kernels-{os.getuid()}" / digest.hexdigest()[:16]


def _keep_in(folder: Path) -> None:
    """Use the folder, and say so if it is the first time: compiling is long work."""
    numba.config.CACHE_DIR = str(folder)
    if not folder.is_dir() or not any(folder.iterdir()):
        events.notice(
            "kernels are compiled at their first use, once for this installation: it takes half a minute or more"
        )


if not os.environ.get("NUMBA_CACHE_DIR"):
    _keep_in(cache_folder())


def kernel(function: _Function) -> _Function:
    """Compile a function for callers in Python: cached, without the GIL, divisions as in C."""
    compiled: Any = _for_all_constants(
        numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    )
    name, compile_ = f"{function.__module__}.{function.__qualname__}.lock", compiled.compile

    def alone(signature: Any) -> Any:
        # First the lock of this process: who waits for a file must not be who others here wait for.
        with global_compiler_lock, _locked(Path(numba.config.CACHE_DIR or tempfile.gettempdir()) / name):
            return compile_(signature)

    compiled.compile = alone
    found: _Function = compiled
    return found


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait for the file's lock; where there are no locks, do without."""
    fd = -1
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
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
    """Compile what only kernels call: without the ways in from Python and from C, which take as long as a small function itself."""
    options |= {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    found: _Function = _for_all_constants(numba.njit(error_model="numpy", **options)(function))
    return found


def _for_all_constants(compiled: Any) -> Any:
    template = compiled.get_call_template

    def of_types_alone(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        return template(tuple(map(unliteral, args)), {name: unliteral(given) for name, given in kws.items()})

    compiled.get_call_template = of_types_alone
    return compiled
