"""Prefixes of buckets and containers, through obstore: every verb, for every service.

A service (S3, Azure, Google Cloud) is a subclass that says how its client is made. What follows is the same for all:
put-if-absent is a conditional put, checked once per process and bucket (`clients`); errors are ours, in few words, and
show no secret (`refusals`).
"""

from __future__ import annotations

import builtins
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO, Any, ClassVar, Self, cast

import pyarrow as pa

from headwater.base import faults
from headwater.base.errors import HeadwaterError, InputError, NotFoundError, StorageError
from headwater.base.storage.address import Address, ServiceName, parse_address
from headwater.base.storage.clients import RETRIES, Connection, check_not_forked, client_of
from headwater.base.storage.elsewhere import check_inside, is_elsewhere, resolve
from headwater.base.storage.interface import Entry, ObjectExistsError, Storage
from headwater.base.storage.options import OptionNames
from headwater.base.storage.refusals import is_bucket_missing, translate

__all__ = ["ObjectStorage"]

_SMALL_BYTES = 1 << 20


class ObjectStorage(Storage):
    """A prefix of a bucket."""

    service: ClassVar[ServiceName]
    option_names: ClassVar[OptionNames]
    bucket_word: ClassVar[str] = "bucket"

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        self._open(parse_address(url), dict(options or {}))

    def _open(self, address: Address, options: dict[str, str]) -> None:
        if address.service != self.service:
            raise StorageError.bad_url(address.url)
        self.options = options
        self._address, self.url, self._prefix = address, address.url, address.prefix
        self._client = client_of(address, options, lambda: self._make(address, options))
        self._store = self._client.store

    @classmethod
    @abstractmethod
    def connection(cls, address: Address, options: Mapping[str, str]) -> Connection:
        """How the bucket of an address is reached with these options."""

    @classmethod
    @abstractmethod
    def make_store(cls, bucket: str, **arguments: Any) -> Any:
        """obstore's client of a bucket."""

    @classmethod
    def _make(cls, address: Address, options: Mapping[str, str]) -> tuple[Any, Connection]:
        connection = cls.connection(address, options)
        http = {"connect_timeout": "5s", **connection.http}
        try:
            store = cls.make_store(
                address.bucket, config=dict(connection.config), client_options=http, retry_config=RETRIES
            )
        except HeadwaterError:
            raise
        except Exception as e:  # noqa: BLE001  (obstore's own errors, ValueError, TypeError: all are about the options)
            why = connection.hide_secrets(str(e)).strip().split("\n", 1)[0]
            raise InputError.bad_storage_options(cls.option_names.service, why, address.url) from None
        return store, connection

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.url, self._shipped_options()))

    def _shipped_options(self) -> Mapping[str, str]:
        """The options for another process, which may run on another machine."""
        return self.options

    def __repr__(self) -> str:  # options hold secrets
        return f"{type(self).__name__}({self.url!r})"

    def child(self, path: str) -> Self:
        made = type(self).__new__(type(self))
        made._open(replace(self._address, prefix=self._key(path).strip("/")), dict(self.options))
        return made

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}".strip("/") if self._prefix else path

    def _missing_bucket(self, path: str) -> StorageError:
        return StorageError.no_bucket(self._address.bucket, self.location(path), self.bucket_word)

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        from obstore import exceptions as oe

        check_not_forked()
        try:
            yield
        except (oe.NotFoundError, FileNotFoundError) as e:
            if is_bucket_missing(str(e)):
                raise self._missing_bucket(path) from self._shown(e)
            raise NotFoundError.object(path, self.url) from self._shown(e)
        except oe.AlreadyExistsError as e:
            raise ObjectExistsError(path) from self._shown(e)
        except (oe.BaseError, OSError) as e:
            if isinstance(e, StorageError):
                raise
            text = self._client.connection.hide_secrets(str(e))
            if is_bucket_missing(text):
                raise self._missing_bucket(path) from self._shown(e)
            raise translate(text, self.location(path), self.option_names) from self._shown(e)

    def _shown(self, error: Exception) -> Exception | None:
        """The error as a cause, for tracebacks; None if its text has a secret, as that of a signed URL."""
        text = str(error)
        return error if self._client.connection.hide_secrets(text) == text and "sig=" not in text else None

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
            self._client.check_conditions(lambda: self._ask_conditions(path))
            faults.point("storage.put_if_absent.before_publish", path)
            obstore.put(self._store, self._key(path), data, mode="create")
            faults.point("storage.put_if_absent.after_publish", path)

    def _ask_conditions(self, path: str) -> None:
        """Create an object beside ``path`` twice; raise if the service lets that happen."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        folder, slash, name = self._key(path).rpartition("/")
        probe = f"{folder}{slash}.{name}.{uuid.uuid4().hex}.tmp"
        obstore.put(self._store, probe, b"does this service honour put-if-absent?", mode="create")
        try:
            obstore.put(self._store, probe, b"it does not", mode="create")
        except AlreadyExistsError:
            return
        finally:
            with suppress(Exception):  # who may not delete leaves a few bytes under a hidden name
                obstore.delete(self._store, probe)
        raise StorageError.ignores_conditions(self.url)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Entry]:
        import obstore

        skip = len(self._prefix) + 1 if self._prefix else 0
        key = self._key(prefix.rstrip("/"))
        with self._errors_of_listing(prefix):
            for chunk in obstore.list(
                self._store, f"{key}/" if key else None, offset=self._key(after) if after else None
            ):
                for meta in chunk:
                    entry = _entry(meta["path"][skip:], meta)
                    if after is None or entry.path > after:  # a service may count the first one in
                        yield entry

    @contextmanager
    def _errors_of_listing(self, prefix: str) -> Iterator[None]:
        """A prefix without objects is empty: what was not found is the bucket."""
        try:
            with self._errors(prefix):
                yield
        except NotFoundError as e:
            raise self._missing_bucket(prefix) from e

    def folders(self, path: str = "") -> builtins.list[str]:
        import obstore

        key = self._key(path)
        with self._errors_of_listing(path):
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

    def remove_folder(self, path: str) -> None:
        """S3 has no folders, but some of its servers keep one that was emptied, and list it (SeaweedFS, for one).

        They delete it by its name, if it is empty. Elsewhere there is nothing of that name.
        """
        import obstore

        check_inside(path, self.url)
        if not self.url.startswith("s3://"):
            return
        for name in self.folders(path):
            self.remove_folder(f"{path}/{name}" if path else name)
        if self._key(path) and next(self.list(f"{path}/" if path else ""), None) is None and self.head(path) is None:
            with suppress(NotFoundError), self._errors(path):
                obstore.delete(self._store, self._key(path))

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
    tag = meta["e_tag"] or ""
    if tag and not tag.startswith('"'):  # Azure's listings leave the quotes out
        tag = f'"{tag}"'
    return Entry(path, meta["size"], int(meta["last_modified"].timestamp() * 1000), tag)


class _Input:
    """An object as the file that Arrow reads from; what goes wrong while reading is one of our errors."""

    closed = False

    def __init__(self, storage: ObjectStorage, path: str, reader: Any) -> None:
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

    def __init__(self, storage: ObjectStorage, path: str, writer: Any) -> None:
        self._storage, self._path, self._writer, self._size = storage, path, writer, 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")  # Arrow's buffers say that their bytes are signed
        with self._storage._errors(self._path):
            self._writer.write(view)
        self._size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Parts are sent as they fill."""
