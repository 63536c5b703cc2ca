"""Discovery: which indexes does a table have?

The names of a lake's indexes are folders of records, and each record says which table it is of. A lake on this machine
is asked each time. One in object storage is asked at most once a minute, so that queries on a lake without indexes make
no requests for them; what this process defines itself is known at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.base.errors import HeadwaterError
from headwater.base.kinds import words_of
from headwater.base.storage import Storage
from headwater.derived.record_log import RecordLog
from headwater.lake.catalog import RECORDS
from headwater.search.definition import Definition

__all__ = ["definitions", "forget_names", "indexes_of"]

_KIND = words_of("index").name
_REMEMBERED_S = 60.0


@dataclass(frozen=True, slots=True)
class _Remembered:
    at: float
    found: Mapping[str, Definition]


_remembered: dict[str, _Remembered] = {}
_guard = threading.Lock()


def definitions(root: Storage) -> Mapping[str, Definition]:
    """The definitions of the indexes of a lake, by name; those that cannot be read are left out."""
    if root.local_path("") is not None:
        return _looked_up(root)
    with _guard:
        known = _remembered.get(root.url)
    if known is None or time.monotonic() - known.at > _REMEMBERED_S:
        known = _Remembered(time.monotonic(), _looked_up(root))
        with _guard:
            _remembered[root.url] = known
    return known.found


def _looked_up(root: Storage) -> Mapping[str, Definition]:
    found = {}
    for name in root.folders(f"{RECORDS}/{_KIND}"):
        try:
            log = RecordLog(root, _KIND, name)
            newest = log.newest()
            if newest is not None:
                found[name] = Definition.from_json(newest.definition, log.path)
        except HeadwaterError:  # whoever opens it reports what is wrong with it
            continue
    return found


def forget_names(root: Storage) -> None:
    """An index was defined: whoever asks next is to look again."""
    with _guard:
        _remembered.pop(root.url, None)


def indexes_of(root: Storage, table: str) -> dict[str, Definition]:
    """The indexes of a table, in whatever case its name is written, sorted by name."""
    found = definitions(root)
    same = {name: one for name, one in found.items() if one.source == table}
    return dict(sorted((same or {n: one for n, one in found.items() if one.source.lower() == table.lower()}).items()))
