"""Storage: the few verbs the lake needs of a disk or an object store.

The whole product rests on two of them. ``put_if_absent`` creates an object or tells that it exists,
whatever else happens, for any number of racing writers: it is how a commit is decided. ``put`` replaces
an object in one step: readers see the old bytes or the new ones, never a mixture.

Local files get both by writing beside the target, flushing to disk, then ``link`` (which fails if the
name is taken) or ``rename``. S3, Azure and Google Cloud get them from conditional puts. A crash leaves at most a hidden
``.….tmp`` file, which `sweep` removes.

Paths are relative to the storage's root, with ``/``, and never start with one. Only what is read may be given by a
whole path, too (`elsewhere`), since a Delta log may name files outside of its table's folder.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from urllib.parse import unquote, urlparse

from headwater.base.storage.address import parse_address
from headwater.base.storage.azure import AzureStorage
from headwater.base.storage.elsewhere import Opener, is_elsewhere, open_by, path_below
from headwater.base.storage.gcs import GoogleStorage
from headwater.base.storage.interface import Entry, ObjectExistsError, Storage
from headwater.base.storage.local import LocalStorage
from headwater.base.storage.s3 import S3Storage

__all__ = [
    "AzureStorage",
    "Entry",
    "GoogleStorage",
    "LocalStorage",
    "ObjectExistsError",
    "S3Storage",
    "Storage",
    "is_elsewhere",
    "now_ms",
    "open_storage",
    "path_below",
]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
_SERVICES: dict[str, Opener] = {"s3": S3Storage, "azure": AzureStorage, "gcs": GoogleStorage}
open_by("file", LocalStorage)
for _name, _opener in _SERVICES.items():
    open_by(_name, _opener)


def open_storage(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """The storage behind a path, or a URL: ``file://…``, ``s3://…``, ``az://…``, ``abfss://…`` or ``gs://…``.

    >>> open_storage("/tmp/lake").url
    '/tmp/lake'
    """
    text = os.fspath(location)
    scheme = urlparse(text).scheme
    if scheme == "file":
        return LocalStorage(unquote(urlparse(text).path), options)
    if _URL.match(text):
        return _SERVICES[parse_address(text).service](text, options)
    return LocalStorage(os.path.expanduser(text), options)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
