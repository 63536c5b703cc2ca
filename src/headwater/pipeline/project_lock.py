"""The lock of a project: one refresh at a time, on this machine and on others.

On a local lake it is the system's own lock on a file of the lake, which goes with the process that holds it, however
that ends. On object storage it is a *lease*: files ``_headwater/projects/<project>/lease/<20 digits>.json``, put if
absent, of which the newest says who holds it until when. It is taken by putting the next number once the newest has
run out or was given back, and kept by putting the next number again before it runs out. Two that try at once put the
same number, and one of them is told that it is there.

The lock only saves work. Each publish is a commit that is decided by the log, so even two that both believe to hold it
never make anything wrong.
"""

from __future__ import annotations

import json
import os
import platform
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headwater.base.errors import ConflictError, HeadwaterError, NotFoundError
from headwater.base.storage import ObjectExistsError, Storage
from headwater.derived.lock import Lock

__all__ = ["project_lock"]

_POLL_SECONDS = 0.2
_LEASE_SECONDS = 30.0
_NUMBER = re.compile(r"(\d{20})\.json")
_BY = re.compile(r"by (.*)$")


@contextmanager
def project_lock(root: Storage, project: str, *, wait_seconds: float = 0.0) -> Iterator[None]:
    """Be the only one that refreshes a project; ConflictError if somebody else does, and goes on for
    ``wait_seconds``.
    """
    name = re.sub(r"\W", "_", project)
    path = f"_headwater/projects/{name}"
    folder = root.local_path(path)
    end = time.monotonic() + wait_seconds
    while True:
        try:
            held = _Flock(folder) if folder is not None else _Lease(root, f"{path}/lease")
        except ConflictError:
            if time.monotonic() >= end:
                raise
            time.sleep(_POLL_SECONDS)
            continue
        break
    try:
        yield
    finally:
        held.release()


class _Flock:
    """The lock of a local lake."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        try:
            self._lock = Lock(folder)
        except ConflictError as error:
            found = _BY.search(error.message)
            raise ConflictError.project_busy(found[1] if found else "another process", folder) from None

    def release(self) -> None:
        self._lock.release()


class _Lease:
    """The lock of a lake in object storage."""

    def __init__(self, root: Storage, path: str) -> None:
        self._root, self._path = root, path
        self._me = f"pid {os.getpid()} on {platform.node()}"
        self._ended = threading.Event()
        newest = self._newest()
        if newest is not None:
            _, owner, until = newest
            if until > time.time():
                raise ConflictError.project_busy(owner, f"{root.url}/{path}")
        self._number = self._put(0 if newest is None else newest[0], time.time() + _LEASE_SECONDS)
        self._keeper = threading.Thread(target=self._keep, name="headwater-lease", daemon=True)
        self._keeper.start()

    def release(self) -> None:
        """Give it back: the next number says that it has run out."""
        self._ended.set()
        self._keeper.join()
        with suppress(HeadwaterError, ObjectExistsError):
            self._number = self._put(self._number, 0.0)
            self._sweep()

    def _keep(self) -> None:
        while not self._ended.wait(_LEASE_SECONDS / 3):
            try:
                self._number = self._put(self._number, time.time() + _LEASE_SECONDS)
            except ConflictError:  # it had run out, and somebody else has it: publishes are decided by the log
                return
            except HeadwaterError:  # the next round tries again
                continue
            self._sweep()

    def _newest(self) -> tuple[int, str, float] | None:
        while numbers := self._numbers():
            try:
                found = json.loads(self._root.get(self._file(numbers[-1])))
                return numbers[-1], str(found["owner"]), float(found["until"])
            except NotFoundError:  # it was swept meanwhile
                continue
            except (ValueError, KeyError, TypeError):  # a torn write says nothing, and holds nothing
                return numbers[-1], "nobody", 0.0
        return None

    def _numbers(self) -> list[int]:
        names = (entry.path.rpartition("/")[2] for entry in self._root.list(f"{self._path}/"))
        return sorted(int(found[1]) for found in map(_NUMBER.fullmatch, names) if found)

    def _put(self, after: int, until: float) -> int:
        value = json.dumps({"owner": self._me, "until": until}).encode()
        try:
            self._root.put_if_absent(self._file(after + 1), value)
        except ObjectExistsError:
            raise ConflictError.project_busy("another process", f"{self._root.url}/{self._path}") from None
        return after + 1

    def _sweep(self) -> None:
        with suppress(HeadwaterError):
            for number in self._numbers()[:-3]:
                self._root.delete(self._file(number))

    def _file(self, number: int) -> str:
        return f"{self._path}/{number:020d}.json"
