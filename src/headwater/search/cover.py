"""Covers: which rows of which data files the documents of a split are.

A split indexes whole data files, every row of them, those that a deletion vector marks too: which rows are alive is for
the table's log to say, for each version of the table. So a document is a row's address, (file, position), and nothing
but the order of the documents is needed to tell it: a *run* is a stretch of documents of one segment that are
consecutive rows of one file.

The file ``<name>.cover`` beside a split is JSON; version 1::

    {"format": "headwater cover", "version": 1, "stamp": "<stamp>", "bytes": <bytes of the split>,
     "files": ["<path, as the log has it>", …], "rows_of": [<rows>, …],
     "segments": [["<id>", <documents>], …],              in the order of the library's meta.json
     "runs": [[<segment>, <document>, <file>, <position>, <count>, <build>, <number>], …]}

A second line has the CRC-32 of the first, in 8 hexadecimal digits. Runs are in the order of segments and documents,
without gaps, and have every position of a file once. ``build`` and ``number`` are what the fields ``_s`` and ``_d`` of
a run's first document hold: by them runs are found again after the library has merged segments.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from headwater.base.errors import CorruptionError

__all__ = ["Cover", "Run"]

_FORMAT, _VERSION = "headwater cover", 1
Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive documents of a segment that are consecutive rows of a file."""

    segment: int
    document: int
    file: int
    position: int
    count: int
    build: int
    number: int


@dataclass(frozen=True)
class Cover:
    """What a split covers."""

    stamp: str
    size: int
    files: tuple[str, ...]
    rows_of: tuple[int, ...]
    segments: tuple[tuple[str, int], ...]
    runs: tuple[Run, ...]

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.segments)

    def to_bytes(self) -> bytes:
        """As the file has it."""
        runs = [[r.segment, r.document, r.file, r.position, r.count, r.build, r.number] for r in self.runs]
        value = {
            "format": _FORMAT,
            "version": _VERSION,
            "stamp": self.stamp,
            "bytes": self.size,
            "files": list(self.files),
            "rows_of": list(self.rows_of),
            "segments": [list(one) for one in self.segments],
            "runs": runs,
        }
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        return line + b"\n%08x" % zlib.crc32(line)

    @classmethod
    def from_bytes(cls, data: bytes, path: str, where: str) -> Cover:
        """Read a file; CorruptionError if it is no cover, or contradicts itself."""
        try:
            line, _, checksum = data.rpartition(b"\n")
            if checksum != b"%08x" % zlib.crc32(line):
                raise ValueError("its checksum is another one")
            found = json.loads(line)
            if found["format"] != _FORMAT or found["version"] != _VERSION:
                raise ValueError(f"it is no cover of version {_VERSION}")
            made = cls(
                str(found["stamp"]),
                int(found["bytes"]),
                tuple(map(str, found["files"])),
                tuple(map(int, found["rows_of"])),
                tuple((str(id_), int(count)) for id_, count in found["segments"]),
                tuple(Run(*map(int, one)) for one in found["runs"]),
            )
            made._check()
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as e:
            raise CorruptionError.state_file(path, str(e), where) from e
        return made

    def _check(self) -> None:
        if len(self.files) != len(self.rows_of) or len(set(self.files)) != len(self.files):
            raise ValueError("its files do not fit their rows")
        at, segment, seen = 0, 0, [0] * len(self.files)
        for run in self.runs:
            while segment < run.segment:
                if at != self.segments[segment][1]:
                    raise ValueError("its runs leave documents out")
                at, segment = 0, segment + 1
            if run.segment != segment or run.document != at or run.count < 1 or run.file < 0 or run.position < 0:
                raise ValueError("its runs do not follow each other")
            at += run.count
            seen[run.file] += run.count
        if segment < len(self.segments) - 1 or (self.segments and at != self.segments[-1][1]):
            raise ValueError("its runs leave documents out")
        if tuple(seen) != self.rows_of:
            raise ValueError("its runs do not have the rows of its files")

    @cached_property
    def _table(self) -> Integers:
        columns = [(r.segment, r.document, r.file, r.position, r.count) for r in self.runs]
        return np.array(columns, np.int64).reshape(-1, 5)

    def addresses(self, segment: int, documents: Integers) -> tuple[Integers, Integers]:
        """The files (by number) and positions of some documents of a segment."""
        table = self._table
        low, high = np.searchsorted(table[:, 0], (segment, segment + 1))
        mine = table[low:high]
        at = np.searchsorted(mine[:, 1], documents, side="right") - 1
        return mine[at, 2], mine[at, 3] + documents - mine[at, 1]

    def documents(self, file: int, positions: Integers) -> list[tuple[int, Integers]]:
        """The documents of some rows of a file, by segment; positions are sorted."""
        found = []
        for run in self.runs:
            if run.file == file:
                low, high = np.searchsorted(positions, (run.position, run.position + run.count))
                if low < high:
                    found.append((run.segment, positions[low:high] - run.position + run.document))
        return found

    def spans(self, file: int) -> list[tuple[int, int, int]]:
        """Where the documents of a file lie: segment, first document, count."""
        return [(r.segment, r.document, r.count) for r in self.runs if r.file == file]


def renumbered(covers: Sequence[Cover], order: Sequence[tuple[int, Run]], segment_id: str, stamp: str) -> Cover:
    """The cover of one segment whose documents are some runs of other splits, in a new order."""
    numbers: dict[str, int] = {}
    runs, at = [], 0
    seen: dict[int, int] = {}
    for split, run in order:
        file = numbers.setdefault(covers[split].files[run.file], len(numbers))
        runs.append(Run(0, at, file, run.position, run.count, run.build, run.number))
        seen[file] = seen.get(file, 0) + run.count
        at += run.count
    rows = tuple(seen[n] for n in range(len(numbers)))
    return Cover(stamp, 0, tuple(numbers), rows, ((segment_id, at),), tuple(runs))
