"""Scratch folders: where splits are put together before they are packed.

The library flushes every file to the disk before it commits. For a split that is only put together here, packed into
one file and flushed then, that is time for nothing, and most of the time of a small one. So small ones are put together
in memory (``/dev/shm``) where the machine has such a folder.
"""

from __future__ import annotations

import os
import tempfile

from headwater.base.scratch import own_folder, scratch_parent

__all__ = ["scratch_folder"]

_MEMORY = "/dev/shm"  # noqa: S108  a folder of its own is made in it
_ROOM_BYTES = 256 << 20


def scratch_folder(purpose: str, *, small: bool) -> str:
    """A new folder; whoever asked for it deletes it, and if that process is killed, another one will (`own_folder`)."""
    parent: str | os.PathLike[str] | None = scratch_parent()
    if small and parent is None and _has_room():
        parent = _MEMORY
    return tempfile.mkdtemp(prefix=f"headwater-{purpose}-", dir=own_folder(parent))


def _has_room() -> bool:
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize > _ROOM_BYTES and os.access(_MEMORY, os.W_OK)
