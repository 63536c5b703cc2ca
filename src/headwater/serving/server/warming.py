"""The machine code of the kernels, loaded before a process forks.

numba takes a second to import and some more to load what it has compiled; done once before the first fork, all workers
have it for nothing. Kernels that were never compiled on this machine are compiled by a process of their own, which may
start threads as it likes: the one that forks later must not have any.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from typing import Any

from headwater.base.errors import SetupError

__all__ = ["load_kernels"]

_PREFIX = "online_"


def load_kernels() -> None:
    """Load the code of the kernels that lookups need."""
    kernels = _kernels()
    missing = [name for name, kernel in kernels.items() if not _has_code(kernel)]
    if missing:
        _compile_apart(missing)
    from headwater.kernels.signature import signature

    for kernel in kernels.values():
        kernel.compile(signature(kernel.py_func))


def _kernels() -> dict[str, Any]:
    package = importlib.import_module("headwater.kernels")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith(_PREFIX):
            importlib.import_module(f"headwater.kernels.{module.name}")
    from headwater.kernels.compiled import kernels

    return {name: kernel for name, kernel in kernels.items() if name.startswith(_PREFIX)}


def _has_code(kernel: Any) -> bool:
    from headwater.kernels.signature import signature

    return bool(kernel._cache.has_code(signature(kernel.py_func), kernel.targetctx))


def _compile_apart(names: list[str]) -> None:
    from headwater.kernels.warm import warm

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            warm(names)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise SetupError.kernel_failed(names[0], "the process that compiled it failed")
