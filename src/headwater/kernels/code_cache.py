"""Where the machine code of kernels is kept, and where it is looked for.

numba's own cache has three faults here. It looks at the file of a function but not at the files of the functions it
calls, so after a change in one of those it would go on with the old code. It writes beside the source, which an
installed package may not. And its folder hashes the path of the package, so every environment on a machine compiles the
same code again.

So the cache of kernels is one folder per *digest*: a hash of the kernels' sources and of the versions of Python, numba
and llvmlite. Environments with the same kernels share it. A kernel is looked for in two places:

1. the user's cache: ``$XDG_CACHE_HOME/headwater/kernels/<digest>`` (``~/.cache`` by default; ``NUMBA_CACHE_DIR`` is
   respected; the temporary folder if it cannot be written), compiled for the processor of this machine;
2. the package: ``_shipped/<digest>/<level>``, made when a wheel is built (`headwater.kernels.ship`), compiled for every
   processor of that level.

The files are numba's own, an index (``.nbi``) and code (``.nbc``) per kernel. The index is keyed by the signature, the
target and the hash of the function's bytecode, so a file that does not fit is never loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import llvmlite
import llvmlite.binding
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

__all__ = ["KernelCache", "Level", "cache_folder", "shipped_code", "shipping_level"]

_NO_KERNELS = (
    "aside.py",
    "code_cache.py",
    "compile_time.py",
    "compiler.py",
    "compiler_process.py",
    "ship.py",
    "signature.py",
    "warm.py",
)
"""Files of this folder that have no influence on machine code."""


class Level(NamedTuple):
    """A family of processors: its name for the compiler,
    and the features that a machine must have to run code for it.
    """

    name: str
    features: frozenset[str]


_LEVELS = {"x86_64": Level("x86-64-v2", frozenset({"cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}))}


def shipping_level() -> Level | None:
    """The level that code is shipped for on a machine of this architecture; None if there is none."""
    return _LEVELS.get(platform.machine().lower().replace("amd64", "x86_64"))


@cache
def _digest() -> str:
    versions = f"{numba.__version__} {llvmlite.__version__} {sys.version_info[:2]} O{numba.config.OPT}"
    digest = hashlib.sha256(versions.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        if source.name not in _NO_KERNELS:
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Where kernels that are compiled on this machine are kept.

    >>> cache_folder().name == cache_folder().name
    True
    """
    roots = [Path(f"{tempfile.gettempdir()}/headwater-kernels-{os.getuid()}")]
    if own := os.environ.get("NUMBA_CACHE_DIR"):
        roots.insert(0, Path(own) / "headwater-kernels")
    else:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
        roots.insert(0, Path(home) / "headwater" / "kernels")
    for root in roots:
        folder = root / _digest()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="headwater-kernels-"))


@cache
def shipped_code() -> tuple[str, Path] | None:
    """The level and the folder of the code that came with the package, if this machine can run it."""
    level = shipping_level()
    if level is None:
        return None
    folder = Path(__file__).parent / "_shipped" / _digest() / level.name
    if not folder.is_dir():
        return None
    has = llvmlite.binding.get_host_cpu_features()
    return (level.name, folder) if all(has.get(feature) for feature in level.features) else None


class _Locator:
    """Names the folder and, in place of a file's timestamp, the digest that the folder is named by."""

    def __init__(self, line: int) -> None:
        self._line = line

    @classmethod
    def from_function(cls, function: Any, _file: str) -> Self:
        return cls(function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        cache_folder().mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return _digest()

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one kernel: what this machine compiled, then what came with the package."""

    _impl_class = _Impl

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._shipped: IndexDataCacheFile | None = None
        if (shipped := shipped_code()) is not None:
            self._level, folder = shipped
            self._shipped = IndexDataCacheFile(str(folder), self._impl.filename_base, _digest())

    def has_code(self, signature: Any, target: Any) -> bool:
        """Is there machine code for the signature, without loading it?

        Another process that compiles it names its file in the index first, and writes it then.
        """
        target.refresh()
        key = self._index_key(signature, target.codegen())
        name = self._cache_file._load_index().get(key)
        is_kept = name is not None and os.path.exists(self._cache_file._data_path(name))
        return is_kept or self._shipped_key(key) is not None

    def _load_overload(self, signature: Any, target: Any) -> Any:
        found = super()._load_overload(signature, target)
        if found is not None or self._shipped is None:
            return found
        key = self._shipped_key(self._index_key(signature, target.codegen()))
        data = None if key is None else self._shipped.load(key)
        return None if data is None else self._impl.rebuild(target, data)

    def _shipped_key(self, key: Any) -> Any:
        """The key of the shipped code in place of the machine's own; None if nothing was shipped for it."""
        if self._shipped is None:
            return None
        signature, (triple, _, _), code = key
        found = (signature, (triple, self._level, ""), code)
        return found if found in self._shipped._load_index() else None
