"""Storage: the few verbs the lake needs of a disk or an object store.

The whole product rests on two of them. ``put_if_absent`` creates an object or tells that it exists,
whatever else happens, for any number of racing writers: it is how a commit is decided. ``put`` replaces
an object in one step: readers see the old bytes or the new ones, never a mixture.

Local files get both by writing beside the target, flushing to disk, then ``link`` (which fails if the
name is taken) or ``rename``. S3 gets them from conditional puts. A crash leaves at most a hidden
``.….tmp`` file, which `sweep` removes.

Paths are relative to the storage's root, with ``/``, and never start with one. Only what is read may be given by a
whole path, too (`elsewhere`), since a Delta log may name files outside of its table's folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from urllib.parse import unquote, urlparse

from headwater.base.errors import StorageError
from headwater.base.storage.elsewhere import is_elsewhere, open_by
from headwater.base.storage.interface import Entry, ObjectExistsError, Storage
from headwater.base.storage.local import LocalStorage
from headwater.base.storage.s3 import S3Storage

__all__ = [
    "Entry",
    "LocalStorage",
    "ObjectExistsError",
    "S3Storage",
    "Storage",
    "is_elsewhere",
    "now_ms",
    "open_storage",
]

open_by("file", LocalStorage)
open_by("s3", S3Storage)


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
        return LocalStorage(unquote(urlparse(text).path), options)
    if scheme and "://" in text:
        raise StorageError.bad_url(text)
    return LocalStorage(os.path.expanduser(text), options)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
