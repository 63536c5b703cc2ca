"""A lock on a folder, so that two processes do not write to it.

The lock is the system's own lock on the file ``lock``, which goes with the process that holds it, however that ends.
The file says who holds it: ``{"host": …, "pid": …}``. A child that was forked has the lock's file open as well, and may
outlive the process that took it; so where the pid in the file is dead, the file is put aside and a new one is locked.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from contextlib import suppress

from headwater.base.errors import ConflictError
from headwater.base.storage.local import translated

__all__ = ["Lock"]

_NAME = "lock"


class Lock:
    """The lock of a folder, held until `release`.

    Raises
    ------
    ConflictError
        another process that is alive holds it, or this one does already
    """

    __slots__ = ("_fd", "_paused", "_pid", "after_another", "folder")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._fd: int | None = None
        self.after_another = False
        """Whether the process that had it last was another one, and has ended: it may have left something half done."""
        self._paused = False
        self._pid = os.getpid()
        with translated(folder, _NAME):
            self._fd = self._taken()

    def _taken(self) -> int:
        path = os.path.join(self.folder, _NAME)
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = _owner(fd)
                abandoned = _is_dead(owner)
                if abandoned and _same(fd, path):
                    os.unlink(path)
                os.close(fd)
                if not abandoned:
                    raise ConflictError.state_locked(_described(owner), self.folder) from None
                continue
            if _same(fd, path):
                self._take_over(fd)
                return fd
            os.close(fd)  # somebody put that file aside between our two calls

    def _take_over(self, fd: int) -> None:
        owner = _owner(fd)
        mine = owner == {"host": platform.node(), "pid": self._pid}
        self.after_another = not mine and _is_dead(owner)
        if not mine:
            self._sign(fd)

    def _sign(self, fd: int) -> None:
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps({"host": platform.node(), "pid": self._pid}).encode(), 0)

    @property
    def held(self) -> bool:
        """Does this very process hold it? A child that was forked does not."""
        return self._fd is not None and not self._paused and self._pid == os.getpid()

    def pause(self) -> None:
        """Let others have it for a while."""
        assert self.held and self._fd is not None, "only who holds it can give it away"
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._paused = True

    def resume(self) -> None:
        """Take it again, after `pause`; raises ConflictError if another process that is alive holds it now."""
        assert not self.held, "it is held already"
        path = os.path.join(self.folder, _NAME)
        with translated(self.folder, _NAME):
            if self._fd is not None:
                with suppress(BlockingIOError):
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if _same(self._fd, path):
                        self._take_over(self._fd)
                        self._paused = False
                        return
                self.release()
            self._fd = self._taken()
            self._paused = False

    def release(self) -> None:
        """Give it back."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __del__(self) -> None:
        self.release()


def _same(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _owner(fd: int) -> dict[str, object]:
    try:
        found = json.loads(os.pread(fd, 4096, 0))
    except ValueError:  # it is being written just now
        return {}
    return found if isinstance(found, dict) else {}


def _is_dead(owner: dict[str, object]) -> bool:
    pid = owner.get("pid")
    if not isinstance(pid, int) or owner.get("host") != platform.node():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _described(owner: dict[str, object]) -> str:
    if not owner:
        return "a process that has not said which it is"
    if owner == {"host": platform.node(), "pid": os.getpid()}:
        return "this very process"
    here = "" if owner.get("host") == platform.node() else f" on {owner.get('host')}"
    return f"pid {owner.get('pid')}{here}"
