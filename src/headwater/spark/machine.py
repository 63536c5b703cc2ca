"""How much of this machine may a local Spark session take?

A container's limits count, not the host's: they are read from the control groups of Linux (version 2,
then version 1). Where there are none, the operating system's own figures are taken. The driver of a local
session does all the work, and the Python workers beside it need memory too, so its heap gets 30% of the
machine, not less than 1 GiB and not more than 8 GiB.

>>> driver_memory_mb(24 * 1024**3)
7372
>>> driver_memory_mb(2 * 1024**3), driver_memory_mb(256 * 1024**3)
(1024, 8192)
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_bytes", "cores", "driver_memory_mb", "memory_bytes"]

_CGROUP = Path("/sys/fs/cgroup")
_MEMORY = Path("/proc/meminfo")


def memory_bytes(cgroup: Path = _CGROUP) -> int:
    """The memory this process may use: the machine's, or less inside a container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = _read(cgroup / name)
        if limit is not None and limit.isdigit():
            # Without a limit, version 1 answers with a number near 2**63 rather than a word.
            return min(total, int(limit))
    return total


def available_bytes(cgroup: Path = _CGROUP, memory: Path = _MEMORY) -> int:
    """The memory that is free or could be freed, within what this process may use at all."""
    total = memory_bytes(cgroup)
    for line in (_read(memory) or "").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return min(total, int(amount.split()[0]) << 10)
    return total


def cores(cgroup: Path = _CGROUP) -> int:
    """How many processors this process may use, at least 1."""
    # macOS has no affinity to ask for.
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = (_read(cgroup / "cpu.max") or "max").split()
    if quota[0].isdigit() and len(quota) > 1:
        count = min(count, -(-int(quota[0]) // int(quota[1])))
    return max(count, 1)


def driver_memory_mb(total_bytes: int) -> int:
    """The heap for the driver of a local session, in MiB, on a machine with ``total_bytes``."""
    return min(max(total_bytes * 3 // 10 // 2**20, 1024), 8192)


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
