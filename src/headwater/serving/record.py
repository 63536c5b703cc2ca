"""The record of an online table: what a commit of its log says (`headwater.derived.record`).

Beside what every record has::

    "layers": [{"files": ["<file>", …], "rows": <n>, "tombstones": <n>, "bytes": <n>}, …],   newest first, base last
    "rows": <n>,                        keys that have a row
    "reach": {"<table>": <version>, …}, the frontier, and what its sources reflect themselves, where they are derived
    "superseded": ["<file>", …]         files of the commit before that this one does not name: deleted by the next

Files lie in the table's folder, ``_headwater/onlines/<name>``. The definition in the log is the kind's own, but always
has ``ttl_ms`` and ``event_time`` (null: none).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.base.frontier import Frontier
from headwater.derived.record import Record
from headwater.serving.record_writer import Written

__all__ = ["LayerEntry", "OnlineRecord"]


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """A layer: its files, one per part, or one for all."""

    files: tuple[str, ...]
    rows: int
    tombstones: int
    bytes: int

    @classmethod
    def of(cls, written: Sequence[Written]) -> LayerEntry:
        """What was written."""
        names = tuple(one.path.rpartition("/")[2] for one in written)
        return cls(
            names, sum(o.rows for o in written), sum(o.tombstones for o in written), sum(o.bytes for o in written)
        )

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"files": list(self.files), "rows": self.rows, "tombstones": self.tombstones, "bytes": self.bytes}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineRecord(Record):
    """Which files hold the rows, and what they reflect."""

    layers: tuple[LayerEntry, ...] = ()
    rows: int = 0
    reach: Frontier = field(default_factory=Frontier)
    superseded: tuple[str, ...] = ()

    @property
    def files(self) -> set[str]:
        """The names of all files."""
        return {name for layer in self.layers for name in layer.files}

    @property
    def overlay_rows(self) -> int:
        """Records of the overlays."""
        return sum(layer.rows for layer in self.layers[:-1])

    @classmethod
    def _own_fields(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "layers": tuple(
                LayerEntry(tuple(one["files"]), int(one["rows"]), int(one["tombstones"]), int(one["bytes"]))
                for one in found["layers"]
            ),
            "rows": int(found["rows"]),
            "reach": Frontier(found["reach"]),
            "superseded": tuple(found["superseded"]),
        }

    def _own_json(self) -> dict[str, Any]:
        return {
            "layers": [one.to_json() for one in self.layers],
            "rows": self.rows,
            "reach": dict(self.reach),
            "superseded": list(self.superseded),
        }
