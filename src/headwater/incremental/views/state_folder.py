"""The folder of a view's state: local for a local lake; for object storage a local cache of immutable files that lie there.

A local lake keeps the state in ``_headwater/views/<name>``, where `Store` works directly. In a lake on object storage every run file and
manifest is uploaded below the same path before the commit that names it, and fetched when this machine does not have it; so any machine can
go on from what another has done. Since two machines may both save a state after the same one, a manifest is there called by a random
name; the numbers that `Store` gives are this machine's own affair.

Who writes: on one machine the lock of the folder lets one process at a time refresh, and others wait. Between machines the commit decides, and
who loses it begins again from what won.

A local state may be saved after the commit that it belongs to (`state_at`); `newest` finds it, though no commit names it.

State is not flushed to the disk: no ending of a process loses it, and it can be computed again. It says in which boot of the machine it was
written, and every byte of it is checked before it is used in another.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from headwater.base import faults, settings
from headwater.base.boot import boot_id
from headwater.base.errors import ConflictError, CorruptionError, NotFoundError
from headwater.base.storage import Storage, now_ms
from headwater.incremental.circuit import durable
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.manifest import Manifest
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.state_at import StateAt

__all__ = ["StateFolder"]

_BOOT = "boot"
_WAIT_SECONDS = 300.0
_YOUNG_MS = 3_600_000  # what is younger may belong to a refresh of another machine that has not committed yet


@contextmanager
def _unflushed() -> Iterator[None]:
    """Write state without flushing it, where it can say in which boot that was."""
    if boot_id() is None:
        yield
        return
    with settings.override(fsync=False):
        yield


class StateFolder:
    """Where the state of one view lies.

    Parameters
    ----------
    root : Storage
        of the lake
    view : str
        its name
    """

    def __init__(self, root: Storage, view: str) -> None:
        self.path = f"_headwater/views/{view}"
        self.root = root
        local = root.local_path(self.path)
        self.remote = local is None
        if local is None:
            place = hashlib.sha256(f"{root.url}/{self.path}".encode()).hexdigest()[:24]
            local = os.path.join(settings.current().spill_dir or tempfile.gettempdir(), "headwater-views", place)
        self.folder = local
        self._store: Store | None = None
        self.opened = 0
        """How often the folder was opened: state of an earlier time cannot be saved here any more."""
        self._uploaded: set[str] = set()
        self._names: dict[str, str] = {}

    # -- who writes ------------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the one process that writes; waits for others."""
        self._take()
        try:
            yield
        finally:
            if self._store is not None:  # else it was removed meanwhile
                self._store.unlock()

    def _take(self) -> None:
        pause, end = 0.001, time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                if self._store is None:
                    self._store = Store(self.folder)
                    self.opened += 1
                else:
                    self._store.lock()
            except ConflictError:
                if time.monotonic() > end:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
                continue
            except NotFoundError:  # the folder was deleted with the view, and the view was made again
                self._store = None
                continue
            return

    @property
    def store(self) -> Store:
        """The store; only while it is `held`."""
        assert self._store is not None
        return self._store

    # -- saving and loading ----------------------------------------------------------------------------------------

    def flush(self, traces: Mapping[str, Trace]) -> None:
        """Do the longer part of `save`: what follows is one small file."""
        with _unflushed():
            self.store.flush(traces)

    def next_name(self) -> str:
        """The name that the next state will have, for a commit that is being prepared while the state is saved."""
        return f"{uuid.uuid4().hex}.json" if self.remote else self.store.next_name()

    def save(self, circuit: Circuit, addresses: Addresses, at: StateAt, *, name: str | None = None) -> str:
        """Make the state durable, and give the name by which a commit names it; until one does, it is an orphan, unless it is settled.

        ``name`` is what `next_name` gave, if that was asked.
        """
        saved = {**addresses.to_json(), _BOOT: boot_id(), "at": at.to_json()}
        name = name or self.next_name()
        with _unflushed():
            given = None if self.remote else name
            local = durable.checkpoint(circuit, self.store, saved, addresses.traces, name=given)
        if not self.remote:
            return local
        for file in sorted(self.store.restore(local).files):
            self._upload(f"runs/{file}")
        faults.point("view.state.before_upload", name)
        with open(os.path.join(self.folder, "manifests", local), "rb") as f:
            self.root.put(f"{self.path}/manifests/{name}", f.read())
        self._names[name] = local
        return name

    def newest(self, name: str, table: str, published: int) -> str:
        """The newest state of a version of a view's table, or of one before it: that which a commit names, or one that was settled later."""
        if self.remote:
            return name
        for other in reversed(self.store.manifests()):
            if other <= name:
                break
            with suppress(CorruptionError, NotFoundError):
                at = StateAt.of(self.store.restore(other).extra["extra"])
                if at is not None and at.settled and at.table == table and at.published <= published:
                    return other
        return name

    def peek(self, name: str, table: str, published: int) -> Manifest | None:
        """What the newest state consists of (`newest`), without opening it; None if that cannot be had. Nobody has to
        hold the folder.
        """
        folder = f"{self.path}/manifests"
        names = [] if self.remote else sorted((e.path.rpartition("/")[2] for e in self.root.list(folder)), reverse=True)
        for other in (*(n for n in names if n > name), name):
            with suppress(NotFoundError, CorruptionError):
                found = Manifest.decode(other, self.root.get(f"{folder}/{other}"), self.folder)
                at = StateAt.of(found.extra["extra"])
                settled = at is not None and at.settled and at.table == table and at.published <= published
                if other == name or settled:
                    return found
        return None

    def has(self, name: str) -> bool:
        """Whether a local state is still there; another process may have swept it."""
        return os.path.exists(os.path.join(self.folder, "manifests", name))

    def load(self, name: str, circuit: Circuit, addresses: Addresses) -> StateAt | None:
        """Let a circuit and addresses be what a state says, and give what it is the state of, if it says so."""
        local = self._fetched(name) if self.remote else name
        manifest = self._trusted(local)
        saved = durable.restore(circuit, self.store, local)
        addresses.load(saved)
        for key, trace in addresses.traces.items():
            self.store.load(manifest, key, trace)
        return StateAt.of(saved)

    def manifest(self, name: str) -> Manifest:
        """The manifest of a state, whose runs are here."""
        return self._trusted(self._fetched(name) if self.remote else name)

    def _trusted(self, local: str) -> Manifest:
        """A manifest whose files are what was written, though it may not have been flushed before the machine was started anew."""
        manifest = self.store.restore(local)
        boot = manifest.extra["extra"].get(_BOOT)
        if boot is not None and boot != boot_id():
            self.store.verify(manifest)
        return manifest

    def _upload(self, path: str) -> None:
        if path in self._uploaded:
            return
        faults.point("view.state.before_upload", path)
        with open(os.path.join(self.folder, path), "rb") as source, self.root.open_output(f"{self.path}/{path}") as to:
            shutil.copyfileobj(source, to, 1 << 20)
        self._uploaded.add(path)

    def _fetched(self, name: str) -> str:
        """The local name of a manifest, which is fetched with its runs unless they are here."""
        known = self._names.get(name)
        if known is not None and os.path.exists(os.path.join(self.folder, "manifests", known)):
            return known
        data = self.root.get(f"{self.path}/manifests/{name}")
        for file in sorted(Manifest.decode(name, data, self.folder).files):
            path = os.path.join(self.folder, "runs", file)
            if not os.path.exists(path):
                self._download(f"runs/{file}", path)
            self._uploaded.add(f"runs/{file}")
        local = self.store.adopt(data)
        self._names[name] = local
        return local

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

    # -- what nobody needs -----------------------------------------------------------------------------------------

    def sweep(self, name: str | None, table: str, published: int) -> None:
        """Delete everything but the state that the newest commit, ``published``, names, and the one that was settled after it."""
        local = None if name is None else (self._names.get(name) if self.remote else name)
        if name is None or local is None:
            kept: set[str] = set()
        else:
            kept = {local} if self.remote else {local, self.newest(name, table, published)}
        self.store.sweep(kept)
        if self.remote:
            self._sweep_remote(name)

    def _sweep_remote(self, name: str | None) -> None:
        keep = set()
        if name is not None:
            keep = {f"{self.path}/runs/{f}" for f in self.store.restore(self._names[name]).files}
            keep.add(f"{self.path}/manifests/{name}")
        old = now_ms() - _YOUNG_MS
        for entry in list(self.root.list(f"{self.path}/")):
            if entry.path not in keep and entry.modified_ms < old:
                self.root.delete(entry.path)
                self._uploaded.discard(entry.path.removeprefix(f"{self.path}/"))

    def remove(self) -> None:
        """Delete all of it: the view is no more."""
        if self._store is not None:
            self._store.close()
            self._store = None
        for entry in list(self.root.list(f"{self.path}/")):
            self.root.delete(entry.path)
        self.root.remove_folder(self.path)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __repr__(self) -> str:
        return f"StateFolder({self.folder!r})"
