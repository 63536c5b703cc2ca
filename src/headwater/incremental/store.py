"""The store: a folder that holds the state of a circuit, and survives the process.

::

    <folder>/lock                       who writes here
    <folder>/runs/<32 hex digits>.run   run files (`headwater.incremental.run_file`)
    <folder>/manifests/<12 digits>.json checkpoints, counted from 1 (`headwater.incremental.manifest`)

Files are written under a temporary name, flushed, and renamed; nothing is ever changed in place. A checkpoint writes
the runs that are not in a file yet, and then one manifest, which is the moment at which it happens. So a process may
end anywhere: what it leaves is the last checkpoint, or the one before, and orphans that `sweep` deletes.

A manifest stays until it is swept. Which of them counts may be decided elsewhere: the commit of a view's output names
the manifest that belongs to it.

Invariants: a file that a manifest names was flushed before the manifest was written; the file of a run that is in use
is not deleted by its own process (others that have it mapped keep reading it).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from headwater.base import faults
from headwater.base.errors import ConflictError, CorruptionError, InputError, NotFoundError
from headwater.base.storage.interface import ObjectExistsError
from headwater.base.storage.local import LocalStorage, flush_folder, translated
from headwater.derived.lock import Lock
from headwater.incremental.manifest import Manifest, RunEntry, TraceEntry
from headwater.incremental.run_file import RunFile, write_run
from headwater.incremental.run_folder import RunFolder, link
from headwater.incremental.run_merge import merge_to_file
from headwater.incremental.trace import Trace
from headwater.incremental.traffic import Meter

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from headwater.incremental.layout import Layout
    from headwater.incremental.run import Bound, Run
    from headwater.incremental.run_header import Header

__all__ = ["Store"]

_RUNS = "runs"
_MANIFESTS = "manifests"
_MANIFEST = re.compile(r"\d{12}\.json")


class Store:
    """A local folder with the runs and manifests of a circuit's state.

    Parameters
    ----------
    folder : str or Path
        made if it is not there
    read_only : bool
        only `restore` and `trace` are asked for, so that no lock is taken

    Raises
    ------
    ConflictError
        another process writes to it

    Examples
    --------
    >>> import tempfile, pyarrow as pa
    >>> from headwater.incremental.layout import Layout
    >>> from headwater.incremental.zset import ZSet
    >>> folder = tempfile.mkdtemp()
    >>> orders = Trace(Layout(pa.schema([("id", pa.int64())]), keys=1))
    >>> with Store(folder) as store:
    ...     orders.add(ZSet.packed(orders.layout, pa.table({"id": [1, 2]})))
    ...     name = store.checkpoint(1, {"orders": orders}, {"version": 7})
    >>> with Store(folder) as store:
    ...     manifest = store.restore()
    ...     print(manifest.epoch, manifest.extra, store.trace(manifest, "orders", orders.layout))
    1 {'version': 7} Trace(2 rows in 1 runs)
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.folder = os.path.abspath(os.fspath(folder))
        self._storage = LocalStorage(self.folder)
        self._runs = RunFolder(os.path.join(self.folder, _RUNS))
        self._lock: Lock | None = None
        self._owner: int | None = None
        self.meter = Meter()
        """Counts how much state is opened and written here."""
        if not read_only:
            for part in (_RUNS, _MANIFESTS):
                LocalStorage(os.path.join(self.folder, part)).make()
            self._lock = Lock(self.folder)
            self._owner = os.getpid()
        elif not os.path.isdir(self.folder):
            raise NotFoundError.folder(self.folder)

    # -- runs ------------------------------------------------------------------------------------------------------

    def write(self, run: Run, *, sync: bool = True) -> Run:
        """Write a run to a file, and give the run that is mapped from it."""
        self._check_writes()
        return self._runs.write(lambda fd: write_run(run, fd), sync=sync).open(run.layout)

    def merge(self, left: Run, right: Run, bound: Bound | None = None, *, sync: bool = False) -> Run:
        """The sum of two runs, written straight to a file."""
        self._check_writes()
        return self._runs.write(lambda fd: merge_to_file(left, right, bound, fd), sync=sync).open(left.layout)

    def make(self, layout: Layout, how: Callable[[int], Header]) -> Run:
        """A run in a new file, which ``how`` fills."""
        self._check_writes()
        return self._runs.write(how, sync=False).open(layout)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def flush(self, traces: Mapping[str, Trace]) -> None:
        """Write the runs that are not in a file yet, so that a checkpoint has only its manifest to write."""
        self._check_lock()
        runs = {id(run): run for trace in traces.values() for run in trace.snapshot()}
        self._runs.keep(list(runs.values()))

    def next_name(self) -> str:
        """The name of the next manifest; it stays free as long as the lock is held, because nobody else gives names."""
        self._check_lock()
        return f"{self._next_number():012d}.json"

    def checkpoint(self, epoch: int, traces: Mapping[str, Trace], extra: Any = None, *, name: str | None = None) -> str:
        """Make the state durable, and give the name of its manifest.

        Parameters
        ----------
        epoch : int
            which step of the circuit it is the state after
        traces : mapping of str to Trace
            the state, by names that stay the same
        extra : anything that JSON can hold
            what else belongs to it: the frontier of the sources
        name : str, optional
            what `next_name` gave, for callers that tell others before it is there

        Raises
        ------
        StorageError
            the disk is full, or fails. The state in memory and the checkpoints before are as they were
        """
        self._check_lock()
        runs = {key: trace.snapshot() for key, trace in traces.items()}
        self._runs.keep(list({id(run): run for some in runs.values() for run in some}.values()))
        entries = {}
        for key, trace in traces.items():
            trace.spine.store = self
            entries[key] = TraceEntry(trace.layout.fingerprint, trace.bound, _entries(runs[key]))
        self.meter.saved(entries)
        manifest = Manifest("", epoch, entries, extra).encode()
        with translated(self.folder, _MANIFESTS):
            faults.point("state.checkpoint.before_manifest", str(epoch))
        return self._put(manifest, name)

    def adopt(self, data: bytes) -> str:
        """Take in a manifest that was made elsewhere, whose runs lie here already, and give its name."""
        self._check_lock()
        self.meter.knows(Manifest.decode("", data, self.folder).files)
        return self._put(data, None)

    def _put(self, manifest: bytes, given: str | None) -> str:
        while True:
            name = given or f"{self._next_number():012d}.json"
            try:
                self._storage.put_if_absent(f"{_MANIFESTS}/{name}", manifest)
                return name
            except ObjectExistsError:
                if given is not None:  # the lock's file was taken away, and somebody else has it
                    raise ConflictError.state_locked("another process, which has saved a state", self.folder) from None

    def manifests(self) -> list[str]:
        """The names of the manifests, oldest first."""
        return sorted(e.path.rpartition("/")[2] for e in self._storage.list(_MANIFESTS) if _is_manifest(e.path))

    def _next_number(self) -> int:
        with translated(self.folder, _MANIFESTS):
            names = filter(_is_manifest, os.listdir(os.path.join(self.folder, _MANIFESTS)))
            return int(max(names, default="0.").partition(".")[0]) + 1

    # -- reading ---------------------------------------------------------------------------------------------------

    def restore(self, name: str | None = None) -> Manifest:
        """A manifest whose files are all there: the newest, or the one of this name.

        Raises
        ------
        NotFoundError
            there is none
        CorruptionError
            it is damaged, or a file that it names; of the newest, if there is no other
        """
        if name is not None:
            return self._read(name)
        names = self.manifests()
        if not names:
            raise NotFoundError.state("checkpoint", "newest", [], self.folder)
        failed: list[tuple[str, CorruptionError]] = []
        for each in reversed(names):
            try:
                return replace(self._read(each), passed_over=tuple(n for n, _ in failed))
            except CorruptionError as e:
                failed.append((each, e))
        raise failed[0][1]

    def _read(self, name: str) -> Manifest:
        try:
            data = self._storage.get(f"{_MANIFESTS}/{name}")
        except NotFoundError:
            raise NotFoundError.state("checkpoint", name, self.manifests(), self.folder) from None
        manifest = Manifest.decode(name, data, self.folder)
        for trace in manifest.traces.values():
            for entry in trace.runs:
                self._runs.file(entry)
        self.meter.knows(manifest.files)
        return manifest

    def trace(self, manifest: Manifest, name: str, layout: Layout) -> Trace:
        """A trace as a manifest has it."""
        trace = Trace(layout)
        self.load(manifest, name, trace)
        return trace

    def load(self, manifest: Manifest, name: str, trace: Trace) -> None:
        """Let a trace be what a manifest says, whatever it was."""
        entry = manifest.traces.get(name)
        if entry is None:
            raise NotFoundError.state("trace", name, sorted(manifest.traces), self.folder)
        layout = trace.layout
        if entry.layout != layout.fingerprint:
            raise CorruptionError.other_layout(manifest.name, entry.layout, layout.fingerprint, self.folder)
        runs = [self._runs.file(run).open(layout) for run in entry.runs]
        trace.bound = entry.bound
        trace.spine.store = None if self._lock is None else self
        trace.load(runs)
        self.meter.opened(name, entry.runs)

    def verify(self, manifest: Manifest) -> None:
        """Read every byte of a manifest's files, and raise CorruptionError at the first that is wrong."""
        for trace in manifest.traces.values():
            for entry in trace.runs:
                RunFile.read(self._runs.file(entry).path).verify()

    # -- the folder ------------------------------------------------------------------------------------------------

    def sweep(self, keep: int | Iterable[str] = 1) -> list[str]:
        """Delete what nobody needs: manifests that are not kept, run files that no kept one names, temporary files.

        ``keep`` is how many manifests, the newest ones that are valid, or their names. Files of runs that are in use
        stay. Gives the names of the files that were deleted.
        """
        self._check_lock()
        # What is there is listed before it is asked what is in use: a merge in the background may write a file at any
        # moment.
        there = {folder: sorted(os.listdir(os.path.join(self.folder, folder))) for folder in (_MANIFESTS, _RUNS)}
        kept = self._kept(keep)
        needed = self._runs.in_use().union(*(manifest.files for manifest in kept.values()))
        deleted = []
        for folder, wanted in ((_MANIFESTS, set(kept)), (_RUNS, needed)):
            for name in there[folder]:
                if name not in wanted:
                    self._storage.delete(f"{folder}/{name}")
                    deleted.append(name)
        return deleted

    def _kept(self, keep: int | Iterable[str]) -> dict[str, Manifest]:
        if not isinstance(keep, int):
            return {name: self._read(name) for name in keep}
        if keep < 1:
            raise InputError.bad_argument("keep", keep, "at least 1, or the names of manifests")
        kept: dict[str, Manifest] = {}
        failed: list[CorruptionError] = []
        for name in reversed(self.manifests()):
            if len(kept) == keep:
                break
            try:
                kept[name] = self._read(name)
            except CorruptionError as e:
                failed.append(e)
        # Nothing is deleted if nothing would be left, or if a later Headwater wrote here and knows what it needs.
        for error in failed:
            if not kept or error.code == "E5010":
                raise error
        return kept

    def fork(self, folder: str | Path, name: str | None = None) -> Store:
        """Another store that begins with a manifest of this one, and shares its run files."""
        manifest = self.restore(name)
        other = Store(folder)
        if other.manifests():
            other.close()
            raise InputError.bad_argument("folder", os.fspath(folder), "a folder without state")
        for file in sorted(manifest.files):
            with translated(other.folder, f"{_RUNS}/{file}"):
                link(self._runs.path(file), other._runs.path(file))
        with translated(other.folder, _RUNS):
            flush_folder(other._runs.path(""))
        data = self._storage.get(f"{_MANIFESTS}/{manifest.name}")
        other._storage.put_if_absent(f"{_MANIFESTS}/{1:012d}.json", data)
        return other

    def unlock(self) -> None:
        """Let others write for a while, and keep what is open; merges in the background go on, in files of their own.

        What others do meanwhile may delete files of runs that no manifest of theirs names. So whoever takes the `lock`
        again has to see that the newest manifest is still the one that it knows, and else to restore.
        """
        self._check_lock()
        assert self._lock is not None
        self._lock.pause()

    def lock(self) -> None:
        """Write again, after `unlock`."""
        self._check_writes()
        assert self._lock is not None
        self._lock.resume()

    @property
    def after_another(self) -> bool:
        """Whether the process that wrote here last was another one, and has ended."""
        return self._lock is not None and self._lock.after_another

    def close(self) -> None:
        """Let others write. Runs that are mapped stay readable."""
        if self._lock is not None:
            self._lock.release()
        self._owner = None

    def _check_writes(self) -> None:
        if self._owner != os.getpid():
            raise InputError.bad_argument(
                "store", self.folder, "one that this process opened to write, and has not closed"
            )

    def _check_lock(self) -> None:
        if self._lock is None or not self._lock.held:
            raise InputError.bad_argument(
                "store", self.folder, "one that this process opened to write, and has not closed"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.folder!r})"


def _entries(runs: Iterable[Run]) -> tuple[RunEntry, ...]:
    found = []
    for run in runs:
        assert run.files, "it was written just now"
        found += [RunEntry(file.name, file.header.rows, file.header.length) for file in run.files]
    return tuple(found)


def _is_manifest(path: str) -> bool:
    return _MANIFEST.fullmatch(path.rpartition("/")[2]) is not None
