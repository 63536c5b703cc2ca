"""Compile every kernel before anybody needs one.

Each kernel has one signature (`signature`), so all of them can be compiled from their names alone, in processes of
their own (`compiler`); those that take longest begin first. A kernel that is there already, in the user's cache or in
the package, is not compiled again.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed

from headwater.base import events
from headwater.base.errors import SetupError
from headwater.kernels import compiled
from headwater.kernels.compiler import Compilers
from headwater.kernels.signature import signature

__all__ = ["missing", "names", "warm"]

_FIRST = ("consolidate.consolidate", "accumulate.accumulate", "groups.groups", "window_prefix.prefixes")
"""Kernels that take longest to compile, and kernels that others call, so that they are begun first."""
_LAST = ("aggregate.aggregate_step",)
"""A kernel that calls many others, so that these are there already."""


def names() -> list[str]:
    """All kernels, in the order in which they are best compiled.

    >>> names()[0], len(names()) > 60
    ('consolidate.consolidate', True)
    """
    package = importlib.import_module("headwater.kernels")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"headwater.kernels.{module.name}")
    others = sorted(set(compiled.kernels) - {*_FIRST, *_LAST})
    return [*_FIRST, *others, *_LAST]


def missing() -> list[str]:
    """The kernels that have no machine code yet."""
    found = []
    for name in names():
        kernel = compiled.kernels[name]
        if not kernel._cache.has_code(signature(kernel.py_func), kernel.targetctx):
            found.append(name)
    return found


def warm(
    wanted: Sequence[str] | None = None, *, jobs: int | None = None, environment: Mapping[str, str] | None = None
) -> list[str]:
    """Compile kernels in ``jobs`` processes (default: one per core): those that are missing, or all that are
    ``wanted``; gives their names.

    ``environment`` is added to that of the processes. Shows progress as a task.
    """
    wanted = missing() if wanted is None else list(wanted)
    if not wanted:
        return []
    processes = Compilers(jobs=jobs, environment=environment, nice=0)
    with events.task("compile kernels", total=len(wanted), unit="kernels") as task:
        try:
            futures = {processes.compile(wanted[0]): wanted[0]}
            futures |= dict(zip(processes.compile_later(wanted[1:]), wanted[1:], strict=True))
            for future in as_completed(futures):
                if (problem := future.result()) is not None:
                    raise SetupError.kernel_failed(futures[future], problem)
                task.advance()
        finally:
            processes.close()
    return list(wanted)
