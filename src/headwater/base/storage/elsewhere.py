"""Paths that lie elsewhere: a Delta log may name files outside of its table's folder, by their whole path.

A shallow clone names the files of the table that it was cloned from; a deletion vector may have an absolute path. Such
a path is a URL (``file:/…``, ``file:///…``, ``s3://bucket/…``, ``abfss://…``) or a plain absolute path, with
percent-encoding already undone. It can be read, with the options of the storage that names it, and is never written or
deleted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headwater.base.errors import HeadwaterError, StorageError
from headwater.base.storage.address import SCHEMES, parse_address

if TYPE_CHECKING:
    from headwater.base.storage.interface import Storage

__all__ = ["Opener", "check_inside", "is_elsewhere", "open_by", "path_below", "resolve"]

_WHOLE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.\-]*:/")
_FILE = re.compile(r"file:(?://[^/]*)?(?=/)")
_REMOTE = re.compile(rf"({'|'.join(SCHEMES)})://[^/]+/(?=.)")

Opener = Callable[[str, Mapping[str, str] | None], "Storage"]
_OPENERS: dict[str, Opener] = {}


def open_by(service: str, opener: Opener) -> None:
    """Say how a storage of a service is opened: any storage may name files of any other."""
    _OPENERS[service] = opener


def is_elsewhere(path: str) -> bool:
    """Whether a path is a whole one, and not one below a storage's root.

    >>> [is_elsewhere(p) for p in ("a=1/b.parquet", "at=12:30/c", "/data/b", "file:/data/b", "s3://bucket/b")]
    [False, False, True, True, True]
    """
    return _WHOLE.match(path) is not None


def resolve(storage: Storage, path: str) -> tuple[Storage, str]:
    """The storage that a whole path lies in, and the path below its root."""
    local = _FILE.sub("", path, count=1)
    if local.startswith("/") and storage.local_path("") is not None:
        folder, name = os.path.split(local)
        return _OPENERS["file"](folder, storage.options), name
    if found := _REMOTE.match(path):
        try:
            return _OPENERS[SCHEMES[found[1]]](found[0].rstrip("/"), storage.options), path[found.end() :]
        except HeadwaterError as e:
            raise StorageError.unreachable(path, storage.url, e.message) from e
    raise StorageError.unreachable(path, storage.url, "it is on no storage that can be opened from there")


def path_below(storage: Storage, path: str) -> str | None:
    """The path below the storage's root that a whole path names, however it spells the place; None if it is outside."""
    if storage.local_path("") is not None:
        root = storage.url.rstrip("/") + "/"
        local = re.sub("^file:/+", "/", path)
        return local[len(root) :] if local.startswith(root) else None
    found = _REMOTE.match(path)
    if found is None:
        return None
    try:
        folder = parse_address(found[0])
    except StorageError:
        return None
    # Only the bucket is parsed as a URL: the key behind it may hold any character.
    here, key = parse_address(storage.url), path[found.end() :]
    lead = f"{here.prefix}/" if here.prefix else ""
    inside = here.shares_bucket(folder) and key.startswith(lead)
    return key[len(lead) :] if inside else None


def check_inside(path: str, root: str) -> None:
    """Raise for a path that is not below the root: what lies elsewhere is not ours to change."""
    if is_elsewhere(path) or ".." in path.split("/"):
        raise StorageError.unreachable(path, root, "what lies outside of it is not written or deleted")
