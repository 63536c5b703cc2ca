"""Machine code that comes with the package, so that nobody has to wait for a compiler.

``python -m headwater.kernels.ship FOLDER`` compiles all kernels for the level of processors that wheels are built for
(`code_cache`), and puts the files under ``FOLDER/_shipped/<digest>/<level>``. It is called when a wheel is built. The
code is found by an installation with the same kernels, Python, numba and llvmlite on a processor of that level; any
other one compiles for itself, as if nothing were there.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headwater.kernels.code_cache import cache_folder, shipping_level
from headwater.kernels.warm import names, warm

__all__ = ["ship"]


def ship(folder: Path, wanted: Sequence[str] | None = None) -> int:
    """Fill a folder with the code of all kernels, or of those ``wanted``; gives how many,
    0 if none is shipped for this architecture.
    """
    level = shipping_level()
    if level is None:
        return 0
    into = folder / "_shipped" / cache_folder().name / level.name
    with tempfile.TemporaryDirectory(prefix="headwater-ship-") as scratch:
        done = warm(
            names() if wanted is None else wanted,
            environment={"NUMBA_CPU_NAME": level.name, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": scratch},
        )
        into.mkdir(parents=True, exist_ok=True)
        for file in Path(scratch).rglob("*.nb[ci]"):
            shutil.copy(file, into / file.name)
    return len(done)


if __name__ == "__main__":
    print(f"{ship(Path(sys.argv[1]))} kernels compiled into {sys.argv[1]}")
