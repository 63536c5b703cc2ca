"""The store: a folder that holds the state of a circuit, and survives the process.

::

    <folder>/lock                       who writes here
    <folder>/runs/<32 hex digits>.run   run files (`headwater.incremental.run_file`)
    <folder>/manifests/<12 digits>.json checkpoints, counted from 1 (`headwater.incremental.manifest`)

Files are written under a temporary name, ``.<name>.<…>.tmp``, flushed, and renamed; nothing is ever changed in place. A checkpoint
writes the runs that are not in a file yet, and then one manifest, which is the moment at which it happens. So a process may end anywhere: what
it leaves is the last checkpoint, or the one before, and orphans that `sweep` deletes. Files of runs that were spilled and merged again
between two checkpoints are deleted as soon as nobody reads them.

A manifest stays until it is swept. Which of them counts may be decided elsewhere: the commit of a view's output names
the manifest that belongs to it.

Invariants: a file that a manifest names was flushed before the manifest was written; the file of a run that is in use is not
deleted by its own process (others that have it mapped keep reading it).
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary, finalize

from headwater.base import faults, settings
from headwater.base.errors import CorruptionError, InputError, NotFoundError
from headwater.base.storage.interface import ObjectExistsError
from headwater.base.storage.local import LocalStorage, flush_folder, translated
from headwater.incremental.lock import Lock
from headwater.incremental.manifest import Manifest, RunEntry, TraceEntry
from headwater.incremental.run_file import Header, RunFile, damaged, write_run
from headwater.incremental.run_merge import merge_to_file
from headwater.incremental.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from headwater.incremental.layout import Layout
    from headwater.incremental.run import Bound, Run

__all__ = ["Store"]

_RUNS = "runs"
_MANIFESTS = "manifests"
_MANIFEST = re.compile(r"\d{12}\.json")
_FLUSHES = 8


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
        self._open: WeakValueDictionary[str, RunFile] = WeakValueDictionary()
        self._being_written: set[str] = set()
        self._guard = threading.Lock()
        self._lock: Lock | None = None
        if not read_only:
            for part in (_RUNS, _MANIFESTS):
                LocalStorage(os.path.join(self.folder, part)).make()
            self._lock = Lock(self.folder)
        elif not os.path.isdir(self.folder):
            raise NotFoundError.folder(self.folder)

    # -- runs ------------------------------------------------------------------------------------------------------

    def write(self, run: Run, *, sync: bool = True) -> Run:
        """Write a run to a file, and give the run that is mapped from it."""
        return self._written(lambda fd: write_run(run, fd), sync=sync).open(run.layout)

    def merge(self, left: Run, right: Run, bound: Bound | None = None, *, sync: bool = False) -> Run:
        """The sum of two runs, written straight to a file."""
        return self._written(lambda fd: merge_to_file(left, right, bound, fd), sync=sync).open(left.layout)

    def _written(self, write: Callable[[int], Header], *, sync: bool) -> RunFile:
        file = self._staged(write)
        try:
            if sync:
                _flush(file)
            self._publish(file)
        except BaseException:
            self._discard(file.path)
            raise
        if sync:
            with translated(self.folder, _RUNS):
                flush_folder(file.path)
        else:
            file.loose = finalize(file, _unlink_own, file.path, os.getpid())
            file.loose.atexit = False
        return file

    def _staged(self, write: Callable[[int], Header]) -> RunFile:
        """Write a file under a temporary name."""
        self._check_lock()
        name = f"{uuid.uuid4().hex}.run"
        path = self._run_path(f".{name}.tmp")
        self._being_written.update((name, f".{name}.tmp"))
        with translated(self.folder, f"{_RUNS}/{name}"):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            try:
                faults.point("state.run.before_write", name)
                header = write(fd)
                faults.point("state.run.written", name)
            except BaseException:
                self._discard(path)
                raise
            finally:
                os.close(fd)
        return RunFile(path, header, synced=False)

    def _discard(self, path: str) -> None:
        _unlink(path)
        name = os.path.basename(path)
        self._being_written -= {name, _final(name)}

    def _publish(self, file: RunFile) -> None:
        """Give a file its name."""
        staged = file.name
        path = self._run_path(_final(staged))
        with translated(self.folder, f"{_RUNS}/{os.path.basename(path)}"):
            faults.point("state.run.before_publish", path)
            os.rename(file.path, path)
            file.path = path
            faults.point("state.run.after_publish", path)
        self._register(file)
        self._being_written -= {staged, file.name}

    def _register(self, file: RunFile) -> None:
        with self._guard:
            self._open[file.name] = file

    def _run_path(self, name: str) -> str:
        return os.path.join(self.folder, _RUNS, name)

    def _file(self, entry: RunEntry) -> RunFile:
        """A run file by its name; the same object as long as that is in use."""
        found = self._open.get(entry.file)
        if found is None:
            found = RunFile.read(self._run_path(entry.file))
            self._register(found)
        if found.header.rows != entry.rows or found.header.length != entry.nbytes:
            raise damaged(found.path, "it is not the file that the checkpoint names")
        return found

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def checkpoint(self, epoch: int, traces: Mapping[str, Trace], extra: Any = None) -> str:
        """Make the state durable, and give the name of its manifest.

        Parameters
        ----------
        epoch : int
            which step of the circuit it is the state after
        traces : mapping of str to Trace
            the state, by names that stay the same
        extra : anything that JSON can hold
            what else belongs to it: the frontier of the sources

        Raises
        ------
        StorageError
            the disk is full, or fails. The state in memory and the checkpoints before are as they were
        """
        self._check_lock()
        runs = {name: trace.snapshot() for name, trace in traces.items()}
        self._keep(list({id(run): run for some in runs.values() for run in some}.values()))
        entries = {}
        for name, trace in traces.items():
            trace.spine.store = self
            entries[name] = TraceEntry(trace.layout.fingerprint, trace.bound, tuple(map(_entry, runs[name])))
        manifest = Manifest("", epoch, entries, extra).encode()
        with translated(self.folder, _MANIFESTS):
            faults.point("state.checkpoint.before_manifest", str(epoch))
        while True:
            name = f"{self._next_number():012d}.json"
            with suppress(ObjectExistsError):
                self._storage.put_if_absent(f"{_MANIFESTS}/{name}", manifest)
                return name

    def _keep(self, runs: list[Run]) -> None:
        """See to it that runs have files here that are flushed."""
        new: list[tuple[Run, RunFile]] = []
        late = []
        try:
            for run in runs:
                if run.file is None:
                    new.append((run, self._staged(lambda fd, run=run: write_run(run, fd))))  # type: ignore[misc]
                elif run.file.folder != os.path.join(self.folder, _RUNS):
                    self._adopt(run.file)
                    late.append(run.file)
                elif not run.file.synced:
                    late.append(run.file)
            _flush_all([file for _, file in new] + late)
            for file in late:
                if file.loose is not None:
                    file.loose.detach()
        except BaseException:
            for _, file in new:
                self._discard(file.path)
            raise
        for at, (run, file) in enumerate(new):
            try:
                self._publish(file)
            except BaseException:
                for _, each in new[at:]:
                    self._discard(each.path)
                raise
            run.file = file
        if new or late:
            with translated(self.folder, _RUNS):
                flush_folder(self._run_path(""))

    def _adopt(self, file: RunFile) -> None:
        """Take a run file of another store in, by a link where that is possible."""
        path = self._run_path(file.name)
        with translated(self.folder, f"{_RUNS}/{file.name}"):
            _link(file.path, path)
        file.path = path
        file.synced = False
        self._register(file)

    def manifests(self) -> list[str]:
        """The names of the manifests, oldest first."""
        return sorted(e.path.rpartition("/")[2] for e in self._storage.list(_MANIFESTS) if _is_manifest(e.path))

    def _next_number(self) -> int:
        names = self.manifests()
        return int(names[-1].partition(".")[0]) + 1 if names else 1

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
                self._file(entry)
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
        runs = [self._file(run).open(layout) for run in entry.runs]
        trace.bound = entry.bound
        trace.spine.store = None if self._lock is None else self
        trace.load(runs)

    def verify(self, manifest: Manifest) -> None:
        """Read every byte of a manifest's files, and raise CorruptionError at the first that is wrong."""
        for trace in manifest.traces.values():
            for entry in trace.runs:
                RunFile.read(self._file(entry).path).verify()

    # -- the folder ------------------------------------------------------------------------------------------------

    def sweep(self, keep: int | Iterable[str] = 1) -> list[str]:
        """Delete what nobody needs: manifests that are not kept, run files that no kept one names, temporary files.

        ``keep`` is how many manifests, the newest ones that are valid, or their names. Files of runs that are in use stay. Gives
        the names of the files that were deleted.
        """
        self._check_lock()
        kept = self._kept(keep)
        with self._guard:
            needed = self._being_written | set(self._open)
        needed.update(file for manifest in kept.values() for file in manifest.files)
        deleted = []
        for folder, wanted in ((_MANIFESTS, set(kept)), (_RUNS, needed)):
            for name in sorted(os.listdir(os.path.join(self.folder, folder))):
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
        for e in failed:
            if not kept or e.code == "E5010":
                raise e
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
                _link(self._run_path(file), other._run_path(file))
        with translated(other.folder, _RUNS):
            flush_folder(other._run_path(""))
        data = self._storage.get(f"{_MANIFESTS}/{manifest.name}")
        other._storage.put_if_absent(f"{_MANIFESTS}/{1:012d}.json", data)
        return other

    def close(self) -> None:
        """Let others write. Runs that are mapped stay readable."""
        if self._lock is not None:
            self._lock.release()

    def _check_lock(self) -> None:
        if self._lock is None or not self._lock.held:
            raise InputError.bad_argument("store", self.folder, "one that this process opened to write, and has not closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.folder!r})"


def _entry(run: Run) -> RunEntry:
    assert run.file is not None, "it was written just now"
    return RunEntry(run.file.name, len(run), run.file.header.length)


def _is_manifest(path: str) -> bool:
    return _MANIFEST.fullmatch(path.rpartition("/")[2]) is not None


def _flush(file: RunFile) -> None:
    with translated(file.folder, file.name):
        faults.point("state.run.before_flush", file.name)
        if settings.current().fsync:
            fd = os.open(file.path, os.O_RDWR)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
    file.synced = True


def _flush_all(files: list[RunFile]) -> None:
    # The journal of a file system takes many files at once, if they are flushed at once.
    if len(files) < 2 or not settings.current().fsync:
        for file in files:
            _flush(file)
        return
    with ThreadPoolExecutor(max_workers=min(len(files), _FLUSHES), thread_name_prefix="headwater-flush") as pool:
        for done in [pool.submit(_flush, file) for file in files]:
            done.result()


def _link(source: str, target: str) -> None:
    """Let a file have another name; copy it where that cannot be, onto another disk."""
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except FileNotFoundError as e:
        raise damaged(source, "it is missing") from e
    except OSError as e:
        if e.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        folder, name = os.path.split(target)
        staged = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        try:
            shutil.copyfile(source, staged)
            os.replace(staged, target)
        except BaseException:
            _unlink(staged)
            raise


def _final(name: str) -> str:
    return name.removeprefix(".").removesuffix(".tmp")


def _unlink_own(path: str, pid: int) -> None:
    """Delete the file of a run that nobody has any more and no manifest ever named."""
    if pid == os.getpid():
        _unlink(path)


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
