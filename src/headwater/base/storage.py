"""Storage: the few verbs the lake needs of a disk or an object store.

The whole product rests on two of them. ``put_if_absent`` creates an object or tells that it exists,
whatever else happens, for any number of racing writers: it is how a commit is decided. ``put`` replaces
an object in one step: readers see the old bytes or the new ones, never a mixture.

Local files get both by writing beside the target, flushing to disk, then ``link`` (which fails if the
name is taken) or ``rename``. S3 gets them from conditional puts. A crash leaves at most a hidden
``.….tmp`` file, which `sweep` removes.

Paths are relative to the storage's root, with ``/``, and never start with one.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote, urlparse

import pyarrow as pa

from headwater.base import faults, settings
from headwater.base.errors import InputError, NotFoundError, StorageError

__all__ = ["Entry", "LocalStorage", "ObjectExistsError", "S3Storage", "Storage", "open_storage"]


class ObjectExistsError(Exception):
    """`Storage.put_if_absent` lost: the object exists already."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored object."""

    path: str
    size: int
    modified_ms: int


class Storage(ABC):
    """A root folder or bucket prefix, and what can be done below it."""

    url: str
    options: Mapping[str, str]

    @abstractmethod
    def get(self, path: str) -> bytes:
        """All bytes of an object; `NotFoundError` if it is not there."""

    @abstractmethod
    def get_range(self, path: str, start: int, length: int) -> bytes: ...

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object in one step."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create an object, or raise `ObjectExistsError`; exactly one of many racing writers wins."""

    @abstractmethod
    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Entry]:
        """Objects below ``prefix`` (a folder), in order of path, those after ``after`` only."""

    @abstractmethod
    def head(self, path: str) -> Entry | None: ...

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object; one that is gone already is fine."""

    @abstractmethod
    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable file for Arrow readers."""

    @abstractmethod
    def open_output(self, path: str) -> Any:
        """A context manager that gives a writable file; it appears under ``path`` only if the block succeeds."""

    @abstractmethod
    def child(self, path: str) -> Storage: ...

    @abstractmethod
    def folders(self, path: str = "") -> list[str]:
        """The names of the folders directly below ``path``."""

    def remove_folder(self, path: str) -> None:
        """Remove the empty folders at and below ``path``, where storage has such a thing."""
        return None

    def exists(self, path: str) -> bool:
        return self.head(path) is not None

    def local_path(self, path: str) -> str | None:
        """The object's path on this machine's disk, or None."""
        return None

    def location(self, path: str) -> str:
        return f"{self.url}/{path}" if path else self.url

    def sweep(self, prefix: str, older_than_ms: int) -> int:
        """Remove temporary files that crashed writers left below ``prefix``; returns how many."""
        return 0


@contextmanager
def _translated(location: str, path: str) -> Iterator[None]:
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

    def local_path(self, path: str) -> str:
        return self._full(path)

    def child(self, path: str) -> LocalStorage:
        return LocalStorage(self._full(path), self.options)

    def get(self, path: str) -> bytes:
        with _translated(self.root, path), open(self._full(path), "rb") as f:
            return f.read()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        with _translated(self.root, path), open(self._full(path), "rb") as f:
            f.seek(start)
            return f.read(length)

    def _staged(self, path: str) -> str:
        folder, name = os.path.split(self._full(path))
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")

    def _write_staged(self, staged: str, data: bytes) -> None:
        with open(staged, "xb") as f:
            f.write(data)
            _flush(f)

    def put(self, path: str, data: bytes) -> None:
        with _translated(self.root, path):
            staged = self._staged(path)
            try:
                self._write_staged(staged, data)
                faults.point("storage.put.before_publish", path)
                os.replace(staged, self._full(path))
            except BaseException:
                _unlink(staged)
                raise
            _flush_folder(self._full(path))
        faults.point("storage.put.after_publish", path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        full = self._full(path)
        with _translated(self.root, path):
            staged = self._staged(path)
            try:
                self._write_staged(staged, data)
                faults.point("storage.put_if_absent.before_publish", path)
                try:
                    os.link(staged, full)
                except FileExistsError:
                    raise ObjectExistsError(path) from None
            finally:
                _unlink(staged)
            _flush_folder(full)
        faults.point("storage.put_if_absent.after_publish", path)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Entry]:
        with _translated(self.root, prefix):
            yield from self._walk(prefix.rstrip("/"), after)

    def _walk(self, folder: str, after: str | None) -> Iterator[Entry]:
        try:
            found = sorted(os.scandir(self._full(folder)), key=lambda e: e.name + ("/" if e.is_dir() else ""))
        except FileNotFoundError:
            return
        for item in found:
            path = f"{folder}/{item.name}" if folder else item.name
            if item.is_dir():
                yield from self._walk(path, after)
            elif (after is None or path > after) and not item.name.endswith(".tmp"):
                try:
                    stat = item.stat()
                except FileNotFoundError:
                    continue  # deleted while we listed
                yield Entry(path, stat.st_size, stat.st_mtime_ns // 1_000_000)

    def folders(self, path: str = "") -> list[str]:
        try:
            with _translated(self.root, path):
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
        try:
            with _translated(self.root, path):
                stat = os.stat(self._full(path))
        except NotFoundError:
            return None
        return Entry(path, stat.st_size, stat.st_mtime_ns // 1_000_000)

    def delete(self, path: str) -> None:
        try:
            with _translated(self.root, path):
                os.unlink(self._full(path))
        except NotFoundError:
            pass

    def open_input(self, path: str) -> pa.NativeFile:
        with _translated(self.root, path):
            return pa.OSFile(self._full(path), "rb")

    @contextmanager
    def open_output(self, path: str) -> Iterator[IO[bytes]]:
        with _translated(self.root, path):
            staged = self._staged(path)
            try:
                with open(staged, "xb") as f:
                    yield f
                    _flush(f)
                faults.point("storage.open_output.before_publish", path)
                os.replace(staged, self._full(path))
            except BaseException:
                _unlink(staged)
                raise

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


def _flush(f: IO[bytes]) -> None:
    if settings.current().fsync:
        f.flush()
        os.fsync(f.fileno())


def _flush_folder(full: str) -> None:
    if settings.current().fsync:
        fd = os.open(os.path.dirname(full), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


class S3Storage(Storage):
    """A bucket prefix of S3 or of a server that speaks it, with conditional puts."""

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        from obstore.store import S3Store

        parsed = urlparse(url)
        if not parsed.netloc:
            raise StorageError.bad_url(url)
        self.url = url.rstrip("/")
        self.options = dict(options or {})
        self._prefix = parsed.path.strip("/")
        self._root = f"s3://{parsed.netloc}"
        self._store = _store_of(parsed.netloc, tuple(sorted(self.options.items())), S3Store)

    def __reduce__(self) -> tuple[object, ...]:
        return (S3Storage, (self.url, self.options))

    def __repr__(self) -> str:  # options hold secrets
        return f"S3Storage({self.url!r})"

    def child(self, path: str) -> S3Storage:
        return S3Storage(f"{self.url}/{path}", self.options)

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}".strip("/") if self._prefix else path

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        from obstore import exceptions as oe

        try:
            yield
        except (oe.NotFoundError, FileNotFoundError) as e:
            raise NotFoundError.object(path, self.url) from e
        except oe.AlreadyExistsError as e:
            raise ObjectExistsError(path) from e
        except (oe.PermissionDeniedError, oe.UnauthenticatedError) as e:
            raise StorageError.denied(self.location(path), _first_line(e)) from e
        except (oe.BaseError, OSError) as e:
            if isinstance(e, StorageError):
                raise
            raise StorageError.failed(self.location(path), _first_line(e)) from e

    def get(self, path: str) -> bytes:
        import obstore

        with self._errors(path):
            return bytes(obstore.get(self._store, self._key(path)).bytes())

    def get_range(self, path: str, start: int, length: int) -> bytes:
        import obstore

        with self._errors(path):
            return bytes(obstore.get_range(self._store, self._key(path), start=start, length=length))

    def put(self, path: str, data: bytes) -> None:
        import obstore

        faults.point("storage.put.before_publish", path)
        with self._errors(path):
            obstore.put(self._store, self._key(path), data)
        faults.point("storage.put.after_publish", path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        import obstore

        faults.point("storage.put_if_absent.before_publish", path)
        with self._errors(path):
            obstore.put(self._store, self._key(path), data, mode="create")
        faults.point("storage.put_if_absent.after_publish", path)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Entry]:
        import obstore

        skip = len(self._prefix) + 1 if self._prefix else 0
        key = self._key(prefix.rstrip("/"))
        with self._errors(prefix):
            for chunk in obstore.list(self._store, f"{key}/" if key else None, offset=self._key(after) if after else None):
                for meta in chunk:
                    modified = int(meta["last_modified"].timestamp() * 1000)
                    yield Entry(meta["path"][skip:], meta["size"], modified)

    def folders(self, path: str = "") -> list[str]:
        import obstore

        key = self._key(path)
        with self._errors(path):
            found = obstore.list_with_delimiter(self._store, f"{key}/" if key else None)
        return sorted(p.rstrip("/").rsplit("/", 1)[-1] for p in found["common_prefixes"])

    def head(self, path: str) -> Entry | None:
        import obstore

        try:
            with self._errors(path):
                meta = obstore.head(self._store, self._key(path))
        except NotFoundError:
            return None
        return Entry(path, meta["size"], int(meta["last_modified"].timestamp() * 1000))

    def delete(self, path: str) -> None:
        import obstore

        try:
            with self._errors(path):
                obstore.delete(self._store, self._key(path))
        except NotFoundError:
            pass

    def open_input(self, path: str) -> pa.NativeFile:
        import obstore

        with self._errors(path):
            return pa.PythonFile(obstore.open_reader(self._store, self._key(path), buffer_size=8 << 20), mode="r")

    @contextmanager
    def open_output(self, path: str) -> Iterator[IO[bytes]]:
        import obstore

        with self._errors(path):
            writer = obstore.open_writer(self._store, self._key(path))
            try:
                yield cast(IO[bytes], writer)
            except BaseException:
                # A multipart upload that is not completed never becomes an object.
                raise
            writer.close()


_stores: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
_stores_lock = threading.Lock()


def _store_of(bucket: str, options: tuple[tuple[str, str], ...], factory: Any) -> Any:
    """One client, with its connection pool, for each bucket and set of options in a process."""
    with _stores_lock:
        key = (bucket, options)
        if key not in _stores:
            config = _s3_config(dict(options))
            client = {"allow_http": True} if config.pop("allow_http", "false") == "true" else None
            _stores[key] = factory(bucket, config=config, client_options=client)
        return _stores[key]


_S3_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "aws_region": "region",
    "aws_default_region": "region",
    "aws_endpoint_url": "endpoint",
    "aws_endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "aws_allow_http": "allow_http",
    "allow_http": "allow_http",
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "session_token": "session_token",
    "region": "region",
    "endpoint": "endpoint",
}


def _s3_config(options: Mapping[str, str]) -> dict[str, str]:
    """Storage options, with the AWS_* variables of the environment beneath them."""
    config: dict[str, str] = {}
    for name, value in [*os.environ.items(), *options.items()]:
        known = _S3_KEYS.get(name.lower())
        if name in os.environ and not name.startswith("AWS_"):
            known = known if name in options else None
        if known:
            config[known] = value
        elif name in options:
            raise InputError.unknown_setting(name, sorted(_S3_KEYS))
    if config.get("endpoint", "").startswith("http://"):
        config.setdefault("allow_http", "true")
    config.setdefault("region", "us-east-1")
    config["allow_http"] = str(config.get("allow_http", "false")).lower()
    return config


def _first_line(e: BaseException) -> str:
    return str(e).strip().split("\n", 1)[0][:200] or type(e).__name__


def open_storage(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """The storage behind a path, ``file://…`` or ``s3://bucket/prefix``.

    >>> open_storage("/tmp/lake").url
    '/tmp/lake'
    """
    text = os.fspath(location)
    scheme = urlparse(text).scheme
    if scheme in ("s3", "s3a"):
        return S3Storage("s3" + text[len(scheme) :], options)
    if scheme == "file":
        return LocalStorage(unquote(urlparse(text).path))
    if scheme and "://" in text:
        raise StorageError.bad_url(text)
    return LocalStorage(os.path.expanduser(text))


def now_ms() -> int:
    return time.time_ns() // 1_000_000
