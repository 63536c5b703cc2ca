"""The folder of an artefact's state: who may write to it, and how its files reach other machines.

A local lake keeps the state in a folder below ``_headwater``, where it is worked on directly. In a lake on object
storage that path holds immutable files, and each machine has a local cache of them: a file is uploaded before the
commit that names it, and fetched when this machine does not have it, so any machine can go on from what another has
done.

Who writes: on one machine the lock of the folder lets one process at a time write, and others wait. Between machines
the commit decides, and whoever loses begins again from what won.

What is in the folder is the kind's own. A kind whose files have their own way of locking overrides `_lock`, `_unlock`
and `_forget`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from headwater.base import faults, settings
from headwater.base.errors import ConflictError, NotFoundError
from headwater.base.storage import Storage, now_ms
from headwater.derived.lock import Lock

__all__ = ["StateFolder"]

_WAIT_SECONDS = 300.0
_YOUNG_MS = 3_600_000  # what is younger may belong to a refresh of another machine that has not committed yet


class StateFolder:
    """Where the state of one artefact lies.

    Parameters
    ----------
    root : Storage
        of the lake
    path : str
        below the root, such as ``_headwater/views/spend``
    """

    def __init__(self, root: Storage, path: str) -> None:
        self.path = path
        self.root = root
        local = root.local_path(path)
        self.remote = local is None
        """Whether the folder is a cache of files in object storage."""
        if local is None:
            place = hashlib.sha256(f"{root.url}/{path}".encode()).hexdigest()[:24]
            local = os.path.join(settings.current().spill_dir or tempfile.gettempdir(), "headwater-state", place)
        self.folder = local
        self._held_lock: Lock | None = None
        self._uploaded: set[str] = set()

    # -- who writes ------------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the one process that writes; waits for others."""
        pause, end = 0.001, time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                self._lock()
            except ConflictError:
                if time.monotonic() > end:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
                continue
            except NotFoundError:  # the folder was deleted with the artefact, and the artefact was made again
                self._forget()
                continue
            break
        try:
            yield
        finally:
            self._unlock()

    def _lock(self) -> None:
        if self._held_lock is None:
            os.makedirs(self.folder, exist_ok=True)
            self._held_lock = Lock(self.folder)
        else:
            self._held_lock.resume()

    def _unlock(self) -> None:
        if self._held_lock is not None:  # else it was removed meanwhile
            self._held_lock.pause()

    @property
    def after_another(self) -> bool:
        """Whether the process that wrote here last was another one, and has ended; while it is `held`."""
        return self._held_lock is not None and self._held_lock.after_another

    def _forget(self) -> None:
        """The folder is gone, and what was known of it with it."""
        self._held_lock = None

    # -- files in object storage -----------------------------------------------------------------------------------

    def upload(self, path: str) -> None:
        """Put a file of the folder where other machines find it, unless it is there."""
        if path in self._uploaded:
            return
        faults.point("derived.state.before_upload", path)
        with open(os.path.join(self.folder, path), "rb") as source, self.root.open_output(f"{self.path}/{path}") as to:
            shutil.copyfileobj(source, to, 1 << 20)
        self._uploaded.add(path)

    def fetch(self, path: str) -> None:
        """Have a file here that another machine has uploaded."""
        to = os.path.join(self.folder, path)
        if not os.path.exists(to):
            self._download(path, to)
        self._uploaded.add(path)

    def _download(self, path: str, to: str) -> None:
        staged = f"{to}.{uuid.uuid4().hex}.tmp"
        try:
            with self.root.open_input(f"{self.path}/{path}") as source, open(staged, "wb") as f:
                shutil.copyfileobj(source, f, 1 << 20)
            os.replace(staged, to)
        except BaseException:
            with suppress(OSError):
                os.unlink(staged)
            raise

    def sweep_remote(self, keep: Collection[str]) -> None:
        """Delete files in object storage that are not kept,
        unless they are so young that they may be about to be named.
        """
        old = now_ms() - _YOUNG_MS
        kept = {f"{self.path}/{path}" for path in keep}
        for entry in list(self.root.list(f"{self.path}/")):
            if entry.path not in kept and entry.modified_ms < old:
                self.root.delete(entry.path)
                self._uploaded.discard(entry.path.removeprefix(f"{self.path}/"))

    def remove(self) -> None:
        """Delete all of it: the artefact is no more."""
        if self._held_lock is not None:
            self._held_lock.release()
        self._forget()
        for entry in list(self.root.list(f"{self.path}/")):
            self.root.delete(entry.path)
        self.root.remove_folder(self.path)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.folder!r})"
