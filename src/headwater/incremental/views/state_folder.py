"""The folder of a view's state (`derived.state_folder`): runs and manifests of a circuit, and of where its rows lie.

In a local lake `Store` works in the folder directly. In object storage two machines may both save a state after the
same one, so there a manifest is called by a random name; the numbers that `Store` gives are this machine's own affair.

A local state may be saved after the commit that it belongs to (`StateAt`); `newest` finds it, though no commit names
it.

State is not flushed to the disk: no ending of a process loses it, and it can be computed again. It says in which boot
of the machine it was written, and every byte of it is checked before it is used in another.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from headwater.base import faults, settings
from headwater.base.boot import boot_id
from headwater.base.errors import CorruptionError, NotFoundError
from headwater.base.storage import Storage
from headwater.derived.state_folder import StateFolder
from headwater.incremental.circuit import durable
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.manifest import Manifest
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.traffic import Traffic
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.record import StateAt

__all__ = ["SCRATCH", "ViewFolder"]

_BOOT = "boot"
SCRATCH = "spark"
"""The folder of what tasks leave for later tasks; nothing in it is of use after a commit."""


@contextmanager
def _unflushed() -> Iterator[None]:
    """Write state without flushing it, where it can say in which boot that was."""
    if boot_id() is None:
        yield
        return
    with settings.override(fsync=False):
        yield


class ViewFolder(StateFolder):
    """Where the state of one view lies."""

    def __init__(self, root: Storage, view: str) -> None:
        super().__init__(root, f"_headwater/views/{view}")
        self._store: Store | None = None
        self.opened = 0
        """How often the folder was opened: state of an earlier time cannot be saved here any more."""
        self._names: dict[str, str] = {}

    def _lock(self) -> None:
        if self._store is None:
            self._store = Store(self.folder)
            self.opened += 1
        else:
            self._store.lock()

    def _unlock(self) -> None:
        if self._store is not None:  # else it was removed meanwhile
            self._store.unlock()

    @property
    def after_another(self) -> bool:
        return self._store is not None and self._store.after_another

    def _forget(self) -> None:
        self._store = None

    @property
    def store(self) -> Store:
        """The store; only while it is `held`."""
        assert self._store is not None
        return self._store

    @property
    def traffic(self) -> Traffic:
        """How much state was opened and written by this process so far, whoever holds the folder."""
        return Traffic() if self._store is None else self._store.meter.traffic

    # -- saving and loading ----------------------------------------------------------------------------------------

    def flush(self, traces: Mapping[str, Trace]) -> None:
        """Do the longer part of `save`: what follows is one small file."""
        with _unflushed():
            self.store.flush(traces)

    def next_name(self) -> str:
        """The name that the next state will have, for a commit that is being prepared while the state is saved."""
        return f"{uuid.uuid4().hex}.json" if self.remote else self.store.next_name()

    def save(self, circuit: Circuit, addresses: Addresses, at: StateAt, *, name: str | None = None) -> str:
        """Make the state durable, and give the name by which a commit names it; until one does, it is an orphan, unless
        it is settled.

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
            self.upload(f"runs/{file}")
        faults.point("derived.state.before_upload", name)
        with open(os.path.join(self.folder, "manifests", local), "rb") as f:
            self.root.put(f"{self.path}/manifests/{name}", f.read())
        self._names[name] = local
        return name

    def adopt(self, manifest: Manifest) -> str:
        """Take in a state whose runs others have written here, or to where this is a cache of; gives its name."""
        data = manifest.encode()
        faults.point("state.checkpoint.before_manifest", str(manifest.epoch))
        if not self.remote:
            return self.store.adopt(data)
        name = self.next_name()
        self.root.put(f"{self.path}/manifests/{name}", data)
        return name

    def listed(self, name: str) -> Manifest:
        """What a state consists of; its runs need not be here."""
        return Manifest.decode(name, self.root.get(f"{self.path}/manifests/{name}"), self.folder)

    def newest(self, name: str, table: str, published: int) -> str:
        """The newest state of a version of a view's table, or of one before it: that which a commit names,
        or one that was settled later.
        """
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
        """A manifest whose files are what was written, though it may not have been flushed before the machine was
        started anew.
        """
        manifest = self.store.restore(local)
        boot = manifest.extra["extra"].get(_BOOT)
        if boot is not None and boot != boot_id():
            self.store.verify(manifest)
        return manifest

    def _fetched(self, name: str) -> str:
        """The local name of a manifest, which is fetched with its runs unless they are here."""
        known = self._names.get(name)
        if known is not None and os.path.exists(os.path.join(self.folder, "manifests", known)):
            return known
        data = self.root.get(f"{self.path}/manifests/{name}")
        for file in sorted(Manifest.decode(name, data, self.folder).files):
            self.fetch(f"runs/{file}")
        local = self.store.adopt(data)
        self._names[name] = local
        return local

    # -- what nobody needs -----------------------------------------------------------------------------------------

    def sweep(self, name: str | None, table: str, published: int) -> None:
        """Delete everything but the state that the newest commit, ``published``, names,
        and the one that was settled after it.
        """
        local = None if name is None else (self._names.get(name) if self.remote else name)
        if name is None or local is None:
            kept: set[str] = set()
        else:
            kept = {local} if self.remote else {local, self.newest(name, table, published)}
        if not self.remote or local is not None or name is None:  # else others have made it, and it is not here
            self.store.sweep(kept)
        if self.remote:
            self._sweep_remote(name)
        else:
            self.clear()

    def _sweep_remote(self, name: str | None) -> None:
        keep = set()
        if name is not None:
            keep = {f"runs/{file}" for file in self.listed(name).files}
            keep.add(f"manifests/{name}")
        self.sweep_remote(keep)

    def clear(self) -> None:
        """Delete what tasks left for others: a commit was made, so nobody needs it."""
        for entry in list(self.root.list(f"{self.path}/{SCRATCH}")):
            self.root.delete(entry.path)
        self.root.remove_folder(f"{self.path}/{SCRATCH}")

    def purge(self, name: str | None) -> None:
        """Delete every state but the one that a commit names, here and in object storage, however young it is."""
        with self.held():
            if name is None:
                self.store.sweep(set())
                kept: set[str] = set()
            else:
                local = self.manifest(name).name
                self.store.sweep({local})
                kept = {f"{self.path}/runs/{file}" for file in self.store.restore(local).files}
                kept.add(f"{self.path}/manifests/{name}")
            if self.remote:
                for entry in list(self.root.list(f"{self.path}/")):
                    if entry.path not in kept:
                        self.root.delete(entry.path)
                        self._uploaded.discard(entry.path.removeprefix(f"{self.path}/"))

    def remove(self) -> None:
        """Delete all of it: the view is no more."""
        if self._store is not None:
            self._store.close()
        super().remove()
