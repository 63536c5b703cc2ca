"""What a commit of an index says: which splits it has.

A record has, beside what every record has (`headwater.derived.record`)::

    "splits": [{"name": "<name>", "stamp": "<stamp>", "rows": <n>, "files": <n>, "bytes": <n>,
                "idle_since": <ms> or null}, …]     idle: none of its files is in the version that the commit reflects
    "superseded": ["<name>", …]                     splits of the commit before that this one does not have

Which files a split covers is in its cover, so a record grows with the splits, of which there are few, and not with
files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwater.derived.record import Record

__all__ = ["IndexRecord", "SplitEntry"]

_NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class SplitEntry:
    """A split of an index."""

    name: str
    stamp: str
    rows: int
    files: int
    bytes: int
    idle_since: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord(Record):
    """Which splits an index has."""

    splits: tuple[SplitEntry, ...] = ()
    superseded: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.splits]

    @classmethod
    def _own_fields(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        splits = tuple(_entry(**one) for one in found["splits"])
        return {"splits": splits, "superseded": tuple(map(_name, found["superseded"]))}

    def _own_json(self) -> dict[str, Any]:
        return {"splits": [asdict(one) for one in self.splits], "superseded": list(self.superseded)}


def _entry(*, name: Any, stamp: Any, rows: Any, files: Any, bytes: Any, idle_since: Any) -> SplitEntry:  # noqa: A002
    return SplitEntry(
        _name(name), str(stamp), int(rows), int(files), int(bytes), None if idle_since is None else int(idle_since)
    )


def _name(found: Any) -> str:
    """The name of a split, which is a part of a path."""
    if not isinstance(found, str) or not _NAME.fullmatch(found):
        raise ValueError(f"{str(found)[:80]!r} is no name of a split")
    return found
