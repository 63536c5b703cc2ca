"""Which boot of the machine this is: whether what was written without being flushed can have been lost.

A process that ends, however it ends, loses nothing that it wrote: the system has it. Only the machine's own end does.
So a file that can be made again need not be flushed, if it says in which boot it was written, and is checked byte by
byte by whoever finds it in another.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["boot_id"]

_LINUX = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> str | None:
    """A text that another boot does not have; None where the system does not tell.

    >>> boot_id() == boot_id()
    True
    """
    try:
        return _LINUX.read_text().strip() or None
    except OSError:
        return None
