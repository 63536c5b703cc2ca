"""What the lake asks of storage."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = ["Entry", "ObjectExistsError", "Storage"]


class ObjectExistsError(Exception):
    """`Storage.put_if_absent` lost: the object exists already."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored object."""

    path: str
    size: int
    modified_ms: int
    tag: str = ""
    """Another one where the object was written again, though its size and its time may be the same; empty:
    not known.
    """


class Storage(ABC):
    """A root folder or bucket prefix, and what can be done below it.

    What is read (`get_range`, `head`, `open_input`, `local_path`) may also be given by a whole path (`elsewhere`).
    """

    url: str
    options: Mapping[str, str]

    @abstractmethod
    def get(self, path: str) -> bytes:
        """All bytes of an object; `NotFoundError` if it is not there."""

    @abstractmethod
    def get_range(self, path: str, start: int, length: int) -> bytes: ...

    @abstractmethod
    def put(self, path: str, data: bytes, *, flush: bool = True) -> None:
        """Create or replace an object in one step.

        Without ``flush`` it may be lost with the machine, until `put_if_absent` was told to come ``after`` it.
        """

    @abstractmethod
    def put_if_absent(
        self, path: str, data: bytes, *, after: Sequence[str] = (), ready: Callable[[], object] | None = None
    ) -> None:
        """Create an object, or raise `ObjectExistsError`; exactly one of many racing writers wins.

        It is there only after the objects of ``after``, which were written without flushing, are safe from the
        machine's ending. It is there only after ``ready`` has returned, too, which is called while they are being
        flushed. If it raises, nothing is put.
        """

    @abstractmethod
    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Entry]:
        """Objects below ``prefix`` (a folder), in order of path, those after ``after`` only."""

    @abstractmethod
    def head(self, path: str) -> Entry | None: ...

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object; one that is gone already is fine."""

    @abstractmethod
    def open_input(self, path: str, *, size: int | None = None) -> pa.NativeFile:
        """A seekable file for Arrow readers; with its ``size``, as far as it is known,
        a small one takes one request.
        """

    @abstractmethod
    def open_output(self, path: str, *, flush: bool = True) -> Any:
        """A context manager that gives a writable file; it appears under ``path`` only if the block succeeds.

        ``flush`` is as in `put`.
        """

    @abstractmethod
    def child(self, path: str) -> Storage: ...

    @abstractmethod
    def folders(self, path: str = "") -> builtins.list[str]:
        """The names of the folders directly below ``path``."""

    def remove_folder(self, path: str) -> None:
        """Remove the empty folders at and below ``path``, where storage has such a thing."""
        return

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
