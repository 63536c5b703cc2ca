"""Where the tests write: into memory, where there is plenty of it.

The suite makes and removes some hundred thousand files, and flushes many of them. A disk takes milliseconds for each, which adds up to minutes
in which no processor works, and more of them while others use the disk. No test can see the difference: what a process wrote is there after its
end, however it ended, on either; only a machine that loses its power could tell. So temporary files go to a memory file system, if the machine has
one with room. A TMPDIR that is set is respected: ``TMPDIR=/tmp make test`` runs on the disk.

The folder goes with the run, unless a test failed; one that a killed run left is removed by the next.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["in_memory", "remove"]

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 6 << 30
"""A whole run needs about a gigabyte at a time. Docker gives 64 MB by default, which is not enough."""
_PREFIX = "headwater-tests-"


def in_memory() -> Path | None:
    """Set up a folder in memory for everything temporary of this process and of those that it starts; None where that is not possible."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return None
    _remove_abandoned()
    if min(shutil.disk_usage(_MEMORY).free, _available_bytes()) < _ROOM_BYTES:
        return None
    made = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_MEMORY)
    os.environ["TMPDIR"] = tempfile.tempdir = made
    os.environ.setdefault("SPARK_LOCAL_DIRS", made)
    return Path(made)


def remove(folder: Path) -> None:
    """Remove a folder of `in_memory`."""
    shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    for left in _MEMORY.glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX).split("-", 1)[0]
        if left.stat().st_uid == os.getuid() and not Path("/proc", owner).exists():
            remove(left)


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0
