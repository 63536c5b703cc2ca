"""Where temporary folders are made: in the folder of the setting ``spill_dir``, which need not be there yet.

A process that is killed deletes nothing. So folders that are worth sweeping up lie in one of the process, which holds a
lock for as long as it lives::

    <temporary folder>/headwater-scratch-…/.lock   held (flock) by the process, and by no other that is alive
    <temporary folder>/headwater-scratch-…/…       its folders

Whoever makes such a folder for the first time in a place deletes those whose lock nobody holds. The system lets a lock
go when its process ends, however it ends; a process id could be another's by then, or of another container.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from headwater.base import settings
from headwater.base.errors import StorageError

__all__ = ["own_folder", "scratch_parent"]

_PREFIX, _LOCK = "headwater-scratch-", ".lock"
_UNLOCKED_S = 3_600
"""A folder without a lock file is only just being made, or was given up between two calls."""


def scratch_parent() -> Path | None:
    """The folder for temporary folders, for ``dir`` of `tempfile`; None is the system's own."""
    folder = settings.current().spill_dir
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError.failed(str(folder), f"the folder of `spill_dir` cannot be made: {error}") from error
    return folder


_own: dict[tuple[int, str], tuple[str, int]] = {}
"""By process and place: its folder there, and the file that it holds the lock by. A forked child has its own."""
_guard = threading.Lock()
os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_guard.release)


def own_folder(parent: str | os.PathLike[str] | None = None) -> str:
    """The folder of this process in another one (by default that of `scratch_parent`), for its temporary folders.

    It goes with the process. What killed processes left in the same place is deleted when it is made.
    """
    place = os.fspath(parent or scratch_parent() or tempfile.gettempdir())
    key = os.getpid(), place
    with _guard:
        known = _own.get(key)
        if known is not None:
            if os.path.exists(os.path.join(known[0], _LOCK)):
                return known[0]
            os.close(known[1])  # somebody deleted it, or all of the place
        _sweep(place)
        _own[key] = _made(place)
        return _own[key][0]


def _made(place: str) -> tuple[str, int]:
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
        path = os.path.join(folder, _LOCK)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # a file system without locks: then nobody else gets one, and nothing is swept
            fcntl.flock(fd, fcntl.LOCK_EX)
        if os.path.exists(path):
            return folder, fd
        os.close(fd)  # swept between our calls


def _sweep(place: str) -> None:
    """Delete the folders of processes that are not alive."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _delete_if_dead(entry.path)


def _delete_if_dead(folder: str) -> None:
    try:
        fd = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        if time.time() - os.stat(folder).st_mtime > _UNLOCKED_S:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)


@atexit.register
def _delete_own() -> None:
    for (process, _), (folder, _) in list(_own.items()):
        if process == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)
