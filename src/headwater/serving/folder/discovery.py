"""Discovery: the newest folder of a date that is complete.

A folder counts if its name is a date, YYYY-MM-DD, of the calendar, it holds the file ``_SUCCESS``, and at least one
file ``*.parquet``. Names that begin with ``_`` or ``.`` are those of other tools (``_temporary``, ``.part.crc``) and
count for nothing. So a job may write for as long as it likes: its folder is not seen before ``_SUCCESS`` is there.

Looking costs one listing of folders, and one of files for each folder from the newest down to the one that is complete;
after a few that are not, everything is listed at once.

What a partition holds is known by its fingerprint: names, sizes and tags of its files. A folder that is written again
under the same date has another one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

from headwater.base.errors import NotFoundError
from headwater.base.storage import Entry, Storage

__all__ = ["Discovery", "Partition", "discover", "look_at"]

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_LIKE_A_DATE = re.compile(r"([0-9]{2,4})[-_.]?([0-9]{1,2})[-_.]?([0-9]{1,2})")
_DONE = "_SUCCESS"
_SUFFIX = ".parquet"
_MISSES = 4
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Partition:
    """A folder of a date that is complete.

    Parameters
    ----------
    day : date
        of its name
    files : tuple of Entry
        its Parquet files, by name
    nested : tuple of str
        Parquet files in folders inside it, which are not read
    """

    day: date
    files: tuple[Entry, ...] = field(repr=False)
    nested: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.day.isoformat()

    @property
    def number(self) -> int:
        """The date as a number that grows with it, as it stands in a frontier: 20240114."""
        return self.day.year * 10_000 + self.day.month * 100 + self.day.day

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(file.size for file in self.files)

    @property
    def fingerprint(self) -> str:
        """What tells it from a folder of the same date that was written again."""
        facts = [(file.path, file.size, file.tag or file.modified_ms) for file in self.files]
        return hashlib.sha256(json.dumps([facts, self.nested]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found: complete partitions, newest first, and what was passed over on the way to them,
    in a few words.
    """

    complete: tuple[Partition, ...]
    skipped: tuple[str, ...] = ()

    @property
    def newest(self) -> Partition | None:
        """The newest complete partition."""
        return self.complete[0] if self.complete else None


def discover(root: Storage, *, most: int = 1) -> Discovery:
    """Look for the newest complete partition below a folder, or for the ``most`` newest ones."""
    names = root.folders()
    if not names and _is_missing(root):
        raise NotFoundError.folder(root.url)
    days = {name: day for name in names if (day := _day(name)) is not None}
    complete: list[Partition] = []
    skipped: list[str] = []
    for name, entries in _listings(root, sorted(days, reverse=True)):
        found = _partition(days[name], name, entries)
        if isinstance(found, Partition):
            complete.append(found)
            if len(complete) == most:
                break
        else:
            skipped.append(f"{name} {found}")
    if complete:
        return Discovery(tuple(complete), tuple(skipped[:_SHOWN]))
    others = [name for name in names if name not in days and _LIKE_A_DATE.fullmatch(name)]
    skipped += [f"{name} is not a date written as YYYY-MM-DD" for name in sorted(others, reverse=True)]
    more = (f"{len(skipped) - _SHOWN:,} more",) if len(skipped) > _SHOWN else ()
    return Discovery((), (*skipped[:_SHOWN], *more))


def look_at(root: Storage, day: date) -> Partition | None:
    """The partition of one day; None if it is not complete."""
    found = _partition(day, day.isoformat(), list(root.list(day.isoformat())))
    return found if isinstance(found, Partition) else None


def _day(name: str) -> date | None:
    found = _DATE.fullmatch(name)
    if found is None:
        return None
    try:
        return date(*map(int, found.groups()))
    except ValueError:
        return None


def _listings(root: Storage, names: Sequence[str]) -> Iterator[tuple[str, list[Entry]]]:
    """The folders with all that lies in them."""
    for name in names[:_MISSES]:
        yield name, list(root.list(name))
    if len(names) > _MISSES:
        wanted: dict[str, list[Entry]] = {name: [] for name in names[_MISSES:]}
        for entry in root.list():
            name = entry.path.partition("/")[0]
            if name in wanted:
                wanted[name].append(entry)
        yield from wanted.items()


def _partition(day: date, name: str, entries: Iterable[Entry]) -> Partition | str:
    """The partition that a folder is, or why it is none."""
    files, nested, done = [], [], False
    for entry in entries:
        inside = entry.path.removeprefix(f"{name}/").split("/")
        done = done or inside == [_DONE]
        if entry.path.endswith(_SUFFIX) and not any(step.startswith(("_", ".")) for step in inside):
            if len(inside) == 1:
                files.append(entry)
            else:
                nested.append("/".join(inside))
    if not done:
        return "has no _SUCCESS"
    if not files and not nested:
        return "has _SUCCESS and no Parquet files"
    return Partition(day, tuple(sorted(files, key=lambda e: e.path)), tuple(sorted(nested)))


def _is_missing(root: Storage) -> bool:
    local = root.local_path("")
    return local is not None and not os.path.isdir(local)
