"""Bucket prefixes of S3, or of a server that speaks it: put-if-absent by conditional puts, through obstore."""

from __future__ import annotations

import builtins
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import IO, Any, cast
from urllib.parse import urlparse

import pyarrow as pa

from headwater.base import faults
from headwater.base.errors import InputError, NotFoundError, StorageError, UnsupportedError
from headwater.base.storage.elsewhere import check_inside, is_elsewhere, resolve
from headwater.base.storage.interface import Entry, ObjectExistsError, Storage

__all__ = ["S3Storage"]

_SMALL_BYTES = 1 << 20


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

        if _forked:
            raise UnsupportedError.operation(
                "using S3 in a forked process",
                "its parent used S3 before, and the client's threads stayed there",
                'start processes with "spawn" or "forkserver", or fork before S3 is used',
            )
        try:
            yield
        except (oe.NotFoundError, FileNotFoundError) as e:
            raise NotFoundError.object(path, self.url) from e
        except oe.AlreadyExistsError as e:
            raise ObjectExistsError(path) from e
        except (oe.BaseError, OSError) as e:
            if isinstance(e, StorageError):
                raise
            raise _translate(str(e), self.location(path), self.url) from e

    def get(self, path: str) -> bytes:
        import obstore

        with self._errors(path):
            return bytes(obstore.get(self._store, self._key(path)).bytes())

    def get_range(self, path: str, start: int, length: int) -> bytes:
        import obstore

        if is_elsewhere(path):
            other, name = resolve(self, path)
            return other.get_range(name, start, length)
        with self._errors(path):
            return bytes(obstore.get_range(self._store, self._key(path), start=start, length=length))

    def put(self, path: str, data: bytes, *, flush: bool = True) -> None:
        import obstore

        del flush  # what a bucket has taken is safe
        check_inside(path, self.url)
        with self._errors(path):
            faults.point("storage.put.before_publish", path)
            obstore.put(self._store, self._key(path), data)
            faults.point("storage.put.after_publish", path)

    def put_if_absent(
        self, path: str, data: bytes, *, after: Sequence[str] = (), ready: Callable[[], object] | None = None
    ) -> None:
        import obstore

        del after
        if ready is not None:
            ready()
        with self._errors(path):
            faults.point("storage.put_if_absent.before_publish", path)
            obstore.put(self._store, self._key(path), data, mode="create")
            faults.point("storage.put_if_absent.after_publish", path)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Entry]:
        import obstore

        skip = len(self._prefix) + 1 if self._prefix else 0
        key = self._key(prefix.rstrip("/"))
        with self._errors(prefix):
            for chunk in obstore.list(
                self._store, f"{key}/" if key else None, offset=self._key(after) if after else None
            ):
                for meta in chunk:
                    yield _entry(meta["path"][skip:], meta)

    def folders(self, path: str = "") -> builtins.list[str]:
        import obstore

        key = self._key(path)
        with self._errors(path):
            found = obstore.list_with_delimiter(self._store, f"{key}/" if key else None)
        return sorted(p.rstrip("/").rsplit("/", 1)[-1] for p in found["common_prefixes"])

    def head(self, path: str) -> Entry | None:
        import obstore

        if is_elsewhere(path):
            other, name = resolve(self, path)
            return other.head(name)
        try:
            with self._errors(path):
                meta = obstore.head(self._store, self._key(path))
        except NotFoundError:
            return None
        return _entry(path, meta)

    def delete(self, path: str) -> None:
        import obstore

        check_inside(path, self.url)
        try:
            with self._errors(path):
                faults.point("storage.delete.before", path)
                obstore.delete(self._store, self._key(path))
        except NotFoundError:
            pass

    def open_input(self, path: str, *, size: int | None = None) -> pa.NativeFile:
        import obstore

        if is_elsewhere(path):
            other, name = resolve(self, path)
            return other.open_input(name, size=size)
        with self._errors(path):
            if size is not None and 0 < size <= _SMALL_BYTES:
                # A reader asks for the size first, then for the footer, then for columns: one after the other.
                found = obstore.get(self._store, self._key(path))
                if found.meta["size"] <= _SMALL_BYTES:  # whoever told the size may be wrong
                    return pa.BufferReader(bytes(found.bytes()))
            reader = obstore.open_reader(self._store, self._key(path), buffer_size=8 << 20)
        return pa.PythonFile(_Input(self, path, reader), mode="r")

    @contextmanager
    def open_output(self, path: str, *, flush: bool = True) -> Iterator[IO[bytes]]:
        import obstore

        del flush
        with self._errors(path):
            writer = obstore.open_writer(self._store, self._key(path))
            # Left without close(), an upload never becomes an object.
            yield cast(IO[bytes], _Output(self, path, writer))
            faults.point("storage.open_output.before_publish", path)
            writer.close()
            faults.point("storage.open_output.after_publish", path)


def _entry(path: str, meta: Any) -> Entry:
    return Entry(path, meta["size"], int(meta["last_modified"].timestamp() * 1000), meta["e_tag"] or "")


class _Input:
    """An object as the file that Arrow reads from; what goes wrong while reading is one of our errors."""

    closed = False

    def __init__(self, storage: S3Storage, path: str, reader: Any) -> None:
        self._storage, self._path, self._reader = storage, path, reader

    def read(self, size: int = -1) -> bytes:
        with self._storage._errors(self._path):
            return bytes(self._reader.read(size) if size >= 0 else self._reader.readall())

    def seek(self, offset: int, whence: int = 0) -> int:
        with self._storage._errors(self._path):
            return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._reader.close()


class _Output:
    """An upload as the file that Parquet is written to."""

    closed = False

    def __init__(self, storage: S3Storage, path: str, writer: Any) -> None:
        self._storage, self._path, self._writer, self._size = storage, path, writer, 0

    def write(self, data: Any) -> int:
        with self._storage._errors(self._path):
            self._writer.write(data)
        size = memoryview(data).nbytes
        self._size += size
        return size

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Parts are sent as they fill."""


_stores: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
_stores_lock = threading.Lock()
_forked = False


def _after_fork() -> None:
    """A child of a process that used S3 would wait forever for threads that it does not have."""
    global _forked
    _forked = bool(_stores)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _store_of(bucket: str, options: tuple[tuple[str, str], ...], factory: Any) -> Any:
    """One client, with its connection pool, for each bucket and set of options in a process."""
    with _stores_lock:
        key = (bucket, options)
        if key not in _stores:
            config = _s3_config(dict(options))
            client: dict[str, Any] = {"connect_timeout": "5s"}
            if config.pop("allow_http", "false") == "true":
                client["allow_http"] = True
            _stores[key] = factory(bucket, config=config, client_options=client, retry_config=_RETRIES)
        return _stores[key]


# A server that is down or wrong is reported after about ten seconds, not minutes.
_RETRIES = {
    "max_retries": 6,
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
    "retry_timeout": timedelta(seconds=60),
}

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
            raise InputError.unknown_option(name, sorted(k.upper() for k in _S3_KEYS if k.startswith("aws_")))
    if config.get("endpoint", "").startswith("http://"):
        config.setdefault("allow_http", "true")
    config.setdefault("region", "us-east-1")
    config["allow_http"] = str(config.get("allow_http", "false")).lower()
    return config


_STATUS = re.compile(r"status code: (\d{3})|(40[13]) (?:Unauthorized|Forbidden)")
_REASON = re.compile(r"<Code>(\w+)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_UNREACHABLE = re.compile(r"error sending request|error trying to connect|tcp connect error|dns error|timed out")


def _translate(text: str, location: str, url: str) -> StorageError:
    """The error of ours for what the client says, in few words; its whole text may quote headers and keys."""
    status, reason = _STATUS.search(text), _REASON.search(text)
    code = reason[1] if reason else ""
    why = ": ".join(filter(None, reason.groups())) if reason else ""
    number = next((n for n in status.groups() if n), "") if status else ""
    if code == "NoSuchBucket":
        return StorageError.no_bucket(urlparse(url).netloc, location)
    if number in ("401", "403") or "lacked the necessary privileges" in text:
        return StorageError.denied(location, why or f"the server answers {number or '403'}")
    if number:
        return StorageError.failed(location, why or f"the server answers {number}")
    if _UNREACHABLE.search(text):
        place = re.search(r"https?://[^/\s?]+", text)
        return StorageError.failed(location, f"cannot reach {place[0] if place else 'the endpoint'}")
    return StorageError.failed(location, text.strip().split("\n", 1)[0][:160] or "unknown error")
