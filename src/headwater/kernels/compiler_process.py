"""A process that compiles kernels: see `headwater.kernels.compiler`, which starts it.

It reads the name of a kernel per line, ``consolidate.consolidate``, and answers each with a line: the name, or ``!``
and what went wrong. It ends with its standard input.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

__all__: list[str] = []


def _serve() -> None:
    """Compile what is asked for on the standard input, until that ends."""
    asked: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(asked,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(int(sys.argv[1]))
    gc.disable()
    # Not earlier: numba is loaded at the low priority, and by a process that ends with its standard input.
    from headwater.kernels import compiled
    from headwater.kernels.signature import signature

    compiled.compiles_here = True
    _skip_parts(compiled.kernels)
    while True:
        name = asked.get()
        try:
            importlib.import_module(f"headwater.kernels.{name.partition('.')[0]}")
            kernel = compiled.kernels[name]
            kernel.compile(signature(kernel.py_func))
            print(name, flush=True)
        except Exception as error:  # noqa: BLE001 - the other process decides what to do
            print("!", type(error).__name__, " ".join(str(error).split())[:500], flush=True)


def _read(asked: SimpleQueue[str]) -> None:
    # Not by the buffered reader: a thread that waits in it may not be there when Python ends.
    rest = b""
    while more := os.read(0, 4096):
        *lines, rest = (rest + more).split(b"\n")
        for line in lines:
            asked.put(line.decode())
    os._exit(0)


def _skip_parts(kernels: Mapping[str, Any]) -> None:
    """Let numba neither optimise nor emit what is only called by kernels: it is a part of them,
    and is optimised there.
    """
    from numba import _dynfunc
    from numba.core.codegen import CPUCodeLibrary
    from numba.core.cpu import CPUContext

    optimize, finalize = CPUCodeLibrary._optimize_final_module, CPUCodeLibrary._finalize_final_module
    executable = CPUContext.get_executable

    def is_kernel(library: Any) -> bool:
        return any(library.name == kernel.py_func.__qualname__ for kernel in kernels.values())

    def optimize_kernel(library: Any) -> None:
        if is_kernel(library):
            optimize(library)

    def finalize_kernel(library: Any) -> None:
        if is_kernel(library):
            finalize(library)
        else:
            library._finalize_dynamic_globals()
            library._finalized = True

    def executable_kernel(context: Any, library: Any, description: Any, environment: Any) -> Any:
        if is_kernel(library):
            return executable(context, library, description, environment)
        library._ensure_finalized()
        name = description.qualname.split(".")[-1]
        return _dynfunc.make_function(description.lookup_module(), name, "", 0, environment, (library,))

    CPUCodeLibrary._optimize_final_module = optimize_kernel
    CPUCodeLibrary._finalize_final_module = finalize_kernel
    CPUContext.get_executable = executable_kernel


if __name__ == "__main__":
    _serve()
