"""Manifests: which run files make up the state at an epoch.

A manifest is one small file. A checkpoint happens when it appears: before, the new run files are orphans; after, they
are the state. It is JSON in UTF-8; version 1::

    {"format": "headwater state", "version": 1,
     "epoch": 12,
     "traces": {"<name>": {"layout": "<fingerprint>", "bound": [word, least] or null,
                           "runs": [{"file": "<name>", "rows": n, "bytes": n}, ...]}, ...},
     "extra": <anything: the caller's>,
     "checksum": "<8 hexadecimal digits>"}

The checksum is the CRC-32 of the same object without it, written with sorted keys, without spaces, and other than ASCII
escaped. A manifest is valid iff it parses, ``format`` and ``version`` are known, the checksum is right, and all its
files are valid.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.base.errors import CorruptionError, InputError

__all__ = ["VERSION", "Manifest", "RunEntry", "TraceEntry"]

VERSION = 1
_FORMAT = "headwater state"


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run file: its name, how many rows it has, and its length."""

    file: str
    rows: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """A trace: the layout of its rows, the bound below which they are forgotten, and its runs."""

    layout: str
    bound: tuple[int, int] | None
    runs: tuple[RunEntry, ...]

    @property
    def rows(self) -> int:
        """How many rows the runs have."""
        return sum(run.rows for run in self.runs)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state at an epoch.

    Examples
    --------
    >>> manifest = Manifest("m", 3, {"t": TraceEntry("(a int64)", None, (RunEntry("x.run", 5, 512),))}, {"orders": 7})
    >>> Manifest.decode("m", manifest.encode(), "folder") == manifest
    True
    """

    name: str
    epoch: int
    traces: Mapping[str, TraceEntry]
    extra: Any = None
    passed_over: tuple[str, ...] = field(default=(), compare=False)
    """Newer manifests that could not be used."""

    @property
    def files(self) -> set[str]:
        """The names of all its run files."""
        return {run.file for trace in self.traces.values() for run in trace.runs}

    def encode(self) -> bytes:
        """The bytes of it."""
        facts = {
            "format": _FORMAT,
            "version": VERSION,
            "epoch": self.epoch,
            "traces": {
                name: {
                    "layout": trace.layout,
                    "bound": trace.bound,
                    "runs": [{"file": r.file, "rows": r.rows, "bytes": r.nbytes} for r in trace.runs],
                }
                for name, trace in self.traces.items()
            },
            "extra": self.extra,
        }
        try:
            # Once through JSON, so that the checksum is of what will be read: keys are texts, and in the order of
            # texts.
            facts["extra"] = json.loads(json.dumps(self.extra, allow_nan=False))
        except (TypeError, ValueError) as e:
            raise InputError.bad_argument("extra", self.extra, f"something that JSON can hold ({e})") from None
        text = _canonical(facts)
        return f'{text[:-1]},"checksum":"{zlib.crc32(text.encode()):08x}"}}\n'.encode()

    @classmethod
    def decode(cls, name: str, data: bytes, where: str) -> Manifest:
        """Read a manifest of any version, or say what is wrong."""
        try:
            facts = json.loads(data)
            if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
                raise CorruptionError.manifest(name, "it is no manifest", where)
            version = facts["version"]
            if not isinstance(version, int) or version < 1:
                raise CorruptionError.manifest(name, f"its version is {version!r}", where)
            if version > VERSION:
                raise CorruptionError.newer_state(name, version, VERSION, where)
            if facts.pop("checksum", None) != _checksum(facts):
                raise CorruptionError.manifest(name, "its checksum is wrong", where)
            return cls(name, facts["epoch"], {k: _trace(v) for k, v in facts["traces"].items()}, facts["extra"])
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise CorruptionError.manifest(name, f"it cannot be read ({type(e).__name__})", where) from e


def _trace(facts: dict[str, Any]) -> TraceEntry:
    bound = facts["bound"]
    runs = tuple(RunEntry(r["file"], r["rows"], r["bytes"]) for r in facts["runs"])
    return TraceEntry(facts["layout"], None if bound is None else (bound[0], bound[1]), runs)


def _canonical(facts: dict[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def _checksum(facts: dict[str, Any]) -> str:
    return f"{zlib.crc32(_canonical(facts).encode()):08x}"
