"""Folders of this machine: put by rename, put-if-absent by link."""

from __future__ import annotations

import builtins
import errno
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa

from headwater.base import faults, settings
from headwater.base.errors import NotFoundError, StorageError
from headwater.base.storage.elsewhere import check_inside, is_elsewhere, resolve
from headwater.base.storage.flushing import flush_together
from headwater.base.storage.interface import Entry, ObjectExistsError, Storage

__all__ = ["LocalStorage", "flush_folder", "translated"]


@contextmanager
def translated(location: str, path: str) -> Iterator[None]:
    """Turn the operating system's errors into ours."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as e:
        raise NotFoundError.object(path, location) from e
    except PermissionError as e:
        raise StorageError.denied(f"{location}/{path}", e.strerror or "denied") from e
    except OSError as e:
        if isinstance(e, StorageError):
            raise
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError.full(f"{location}/{path}") from e
        raise StorageError.failed(f"{location}/{path}", e.strerror or str(e)) from e


class LocalStorage(Storage):
    """A folder of this machine."""

    def __init__(self, root: str | Path, options: Mapping[str, str] | None = None) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.url = self.root
        self.options = dict(options or {})

    def __reduce__(self) -> tuple[object, ...]:
        return (LocalStorage, (self.root, self.options))

    def _full(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root

    def local_path(self, path: str) -> str | None:
        if is_elsewhere(path):
            other, name = resolve(self, path)
            return other.local_path(name)
        return self._full(path)

    def child(self, path: str) -> LocalStorage:
        return LocalStorage(self._full(path), self.options)

    def make(self) -> None:
        """Make the root folder, if it is not there."""
        if os.path.exists(self.root) and not os.path.isdir(self.root):
            raise StorageError.not_a_folder(self.root)
        with translated(self.root, ""):
            _make_folder(self.root)

    def get(self, path: str) -> bytes:
        with translated(self.root, path), open(self._full(path), "rb") as f:
            return f.read()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        if is_elsewhere(path):
            other, name = resolve(self, path)
            return other.get_range(name, start, length)
        with translated(self.root, path), open(self._full(path), "rb") as f:
            f.seek(start)
            return f.read(length)

    def _staged(self, path: str) -> str:
        check_inside(path, self.root)
        folder, name = os.path.split(self._full(path))
        _make_folder(folder)
        return os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")

    def _write_staged(self, staged: str, data: bytes, *, flush: bool = True) -> None:
        with open(staged, "xb") as f:
            f.write(data)
            if flush:
                _flush(f)

    def put(self, path: str, data: bytes, *, flush: bool = True) -> None:
        with translated(self.root, path):
            staged = self._staged(path)
            try:
                self._write_staged(staged, data, flush=flush)
                faults.point("storage.put.before_publish", path)
                os.replace(staged, self._full(path))
            except BaseException:
                _unlink(staged)
                raise
            if flush:
                flush_folder(self._full(path))
            faults.point("storage.put.after_publish", path)

    def put_if_absent(
        self, path: str, data: bytes, *, after: Sequence[str] = (), ready: Callable[[], object] | None = None
    ) -> None:
        full = self._full(path)
        with translated(self.root, path):
            staged = self._staged(path)
            try:
                self._write_staged(staged, data, flush=not after)
                if after and settings.current().fsync:
                    flush_together([staged, *self._with_folders(after)], meanwhile=ready)
                elif ready is not None:
                    ready()
                faults.point("storage.put_if_absent.before_publish", path)
                try:
                    os.link(staged, full)
                except FileExistsError:
                    raise ObjectExistsError(path) from None
            finally:
                _unlink(staged)
            flush_folder(full)
            faults.point("storage.put_if_absent.after_publish", path)

    def _with_folders(self, paths: Sequence[str]) -> builtins.list[str]:
        """The full paths of files, with those of the folders that they lie in: a name is flushed with its folder."""
        folders = {parent for path in paths for parent in (os.path.dirname(path), "")}
        return [self._full(path) for path in (*paths, *sorted(folders))]

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Entry]:
        with translated(self.root, prefix):
            yield from self._walk(prefix.rstrip("/"), after)

    def _walk(self, folder: str, after: str | None) -> Iterator[Entry]:
        try:
            found = [e for e in os.scandir(self._full(folder)) if _may_follow(folder, e.name, after)]
        except FileNotFoundError:
            return
        for item in sorted(found, key=lambda e: e.name + ("/" if e.is_dir() else "")):
            path = f"{folder}/{item.name}" if folder else item.name
            if item.is_dir():
                yield from self._walk(path, after)
            elif (after is None or path > after) and not item.name.endswith(".tmp"):
                try:
                    stat = item.stat()
                except FileNotFoundError:
                    continue  # deleted while we listed
                yield _entry(path, stat)

    def folders(self, path: str = "") -> builtins.list[str]:
        try:
            with translated(self.root, path):
                return sorted(e.name for e in os.scandir(self._full(path)) if e.is_dir())
        except NotFoundError:
            return []

    def remove_folder(self, path: str) -> None:
        for folder, _, _ in os.walk(self._full(path), topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                continue  # not empty

    def head(self, path: str) -> Entry | None:
        if is_elsewhere(path):
            other, name = resolve(self, path)
            return other.head(name)
        with translated(self.root, path):
            try:
                stat = os.stat(self._full(path))
            except (FileNotFoundError, NotADirectoryError):  # an answer, which is asked for often, and no error
                return None
        return _entry(path, stat)

    def delete(self, path: str) -> None:
        check_inside(path, self.root)
        try:
            with translated(self.root, path):
                faults.point("storage.delete.before", path)
                os.unlink(self._full(path))
        except NotFoundError:
            pass

    def open_input(self, path: str, *, size: int | None = None) -> pa.NativeFile:
        if is_elsewhere(path):
            other, name = resolve(self, path)
            return other.open_input(name)
        with translated(self.root, path):
            return pa.OSFile(self._full(path), "rb")

    @contextmanager
    def open_output(self, path: str, *, flush: bool = True) -> Iterator[IO[bytes]]:
        with translated(self.root, path):
            staged = self._staged(path)
            try:
                with open(staged, "xb") as f:
                    yield f
                    if flush:
                        _flush(f)
                faults.point("storage.open_output.before_publish", path)
                os.replace(staged, self._full(path))
            except BaseException:
                _unlink(staged)
                raise
            if flush:
                flush_folder(self._full(path))
            faults.point("storage.open_output.after_publish", path)

    def sweep(self, prefix: str, older_than_ms: int) -> int:
        removed = 0
        for folder, _, names in os.walk(self._full(prefix)):
            for name in names:
                full = os.path.join(folder, name)
                if name.startswith(".") and name.endswith(".tmp"):
                    try:
                        if os.stat(full).st_mtime * 1000 < older_than_ms:
                            os.unlink(full)
                            removed += 1
                    except FileNotFoundError:
                        continue
        return removed


def _entry(path: str, stat: os.stat_result) -> Entry:
    return Entry(path, stat.st_size, stat.st_mtime_ns // 1_000_000, f"{stat.st_ino:x}-{stat.st_mtime_ns:x}")


def _may_follow(folder: str, name: str, after: str | None) -> bool:
    """Whether a file of this name, or one below a folder of this name,
    may come after another in the order of a listing.
    """
    if after is None:
        return True
    path = f"{folder}/{name}" if folder else name
    return path > after or after.startswith(f"{path}/")


def _flush(f: IO[bytes]) -> None:
    if settings.current().fsync:
        f.flush()
        os.fsync(f.fileno())


def _make_folder(folder: str) -> None:
    """Make a folder that survives a power cut: the names of new folders are flushed, too."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each)
        flush_folder(each)


def flush_folder(full: str) -> None:
    if settings.current().fsync:
        fd = os.open(os.path.dirname(full), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
