"""The run files of a store: written, published, kept and taken over.

A file is written under a temporary name, ``.<name>.tmp``, flushed, and renamed to ``<32 hex digits>.run``; it never
changes. A run that is spilled is not flushed at once: a checkpoint does that before it names the file. Until then the
file is *loose*: it is deleted with the last run that reads it, because most of them are merged into others before
anybody asks for a checkpoint.

Invariants: `keep` returns after every file, and every name, is on the disk; `in_use` has every name that some thread of
this process is writing, or reads from.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, finalize

from headwater.base import faults, settings
from headwater.base.storage.local import flush_folder, translated
from headwater.incremental.run_file import RunFile, write_narrow
from headwater.incremental.run_header import Header, damaged

if TYPE_CHECKING:
    from headwater.incremental.manifest import RunEntry
    from headwater.incremental.run import Run, RunHandle

__all__ = ["RunFolder", "link"]

_FLUSHES = 8


class RunFolder:
    """A folder of run files."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._open: WeakValueDictionary[str, RunHandle] = WeakValueDictionary()
        self._being_written: set[str] = set()
        self._guard = threading.Lock()
        self._names_unflushed = False

    def path(self, name: str) -> str:
        """The path of a file."""
        return os.path.join(self.folder, name)

    def in_use(self) -> set[str]:
        """The names of files that may not be deleted."""
        with self._guard:
            return self._being_written | set(self._open)

    def file(self, entry: RunEntry) -> RunHandle:
        """The file that a manifest names; the same object as long as that is in use."""
        found = self._open.get(entry.file)
        if found is None:
            found = RunFile.read(self.path(entry.file))
            self._register(found)
        if found.header.rows != entry.rows or found.header.length != entry.nbytes:
            raise damaged(found.path, "it is not the file that the checkpoint names")
        return found

    def write(self, how: Callable[[int], Header], *, sync: bool) -> RunFile:
        """Make a new file; ``how`` fills it."""
        file = self._staged(how)
        try:
            if sync:
                _flush(file)
            self._publish(file)
        except BaseException:
            self._discard(file)
            raise
        if sync:
            self._flush_names()
        else:
            file.loose = finalize(file, _unlink_own, file.path, os.getpid())
            file.loose.atexit = False
        return file

    def keep(self, runs: Sequence[Run]) -> None:
        """See to it that runs have files here, their own or those of their parts, which are flushed."""
        new: list[tuple[Run, RunFile]] = []
        late: list[RunHandle] = []
        try:
            for run in runs:
                files = run.files
                if not files:
                    new.append((run, self._staged(_writer(run))))
                for file in files:
                    if file.folder != self.folder:
                        self._adopt(file)
                    if not file.synced:
                        late.append(file)
            _flush_all([file for _, file in new] + late)
            for run, file in new:
                self._publish(file)
                run.file = file
        except BaseException:
            for run, file in new:
                if run.file is not file:
                    self._discard(file)
            raise
        for file in late:
            if file.loose is not None:
                file.loose.detach()
        self._flush_names()

    def _staged(self, how: Callable[[int], Header]) -> RunFile:
        """Write a file under a temporary name."""
        name = f"{uuid.uuid4().hex}.run"
        path = self.path(_temporary(name))
        with self._guard:
            self._being_written |= {name, _temporary(name)}
        try:
            with translated(self.folder, name):
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
                try:
                    faults.point("state.run.before_write", name)
                    header = how(fd)
                    faults.point("state.run.written", name)
                finally:
                    os.close(fd)
        except BaseException:
            _unlink(path)
            self._written(name)
            raise
        return RunFile(path, header, synced=False)

    def _publish(self, file: RunFile) -> None:
        """Give a file its name."""
        name = _final(file.name)
        with translated(self.folder, name):
            faults.point("state.run.before_publish", name)
            self._names_unflushed = True
            os.rename(file.path, self.path(name))
            file.path = self.path(name)
            faults.point("state.run.after_publish", name)
        self._register(file)
        self._written(name)

    def _discard(self, file: RunFile) -> None:
        _unlink(file.path)
        self._written(_final(file.name))

    def _written(self, name: str) -> None:
        with self._guard:
            self._being_written -= {name, _temporary(name)}

    def _register(self, file: RunHandle) -> None:
        with self._guard:
            self._open[file.name] = file

    def _adopt(self, file: RunHandle) -> None:
        """Take a file of another folder in, by a link where that is possible."""
        with translated(self.folder, file.name):
            self._names_unflushed = True
            link(file.path, self.path(file.name))
        file.path = self.path(file.name)
        file.synced = False
        self._register(file)

    def _flush_names(self) -> None:
        if self._names_unflushed:
            with translated(self.folder, ""):
                flush_folder(self.path(""))
            self._names_unflushed = False


def link(source: str, target: str) -> None:
    """Let a run file have another name; copy it where that cannot be, to another disk."""
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
        staged = os.path.join(folder, _temporary(name))
        try:
            shutil.copyfile(source, staged)
            with open(staged, "rb+") as f:
                os.fsync(f.fileno())
            os.replace(staged, target)
        except BaseException:
            _unlink(staged)
            raise


def _writer(run: Run) -> Callable[[int], Header]:
    return lambda fd: write_narrow(run, fd)


def _temporary(name: str) -> str:
    return f".{name}.tmp"


def _final(name: str) -> str:
    return name.removeprefix(".").removesuffix(".tmp")


def _flush(file: RunHandle) -> None:
    with translated(file.folder, file.name):
        faults.point("state.run.before_flush", file.name)
        if settings.current().fsync:
            fd = os.open(file.path, os.O_RDWR)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
    file.synced = True


def _flush_all(files: Sequence[RunHandle]) -> None:
    # The journal of a file system takes many files at once, if they are flushed at once.
    if len(files) < 2 or not settings.current().fsync:
        for file in files:
            _flush(file)
        return
    with ThreadPoolExecutor(max_workers=min(len(files), _FLUSHES), thread_name_prefix="headwater-flush") as pool:
        for done in [pool.submit(_flush, file) for file in files]:
            done.result()


def _unlink_own(path: str, pid: int) -> None:
    """Delete a loose file, unless this is a child that was forked."""
    if pid == os.getpid():
        _unlink(path)


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
