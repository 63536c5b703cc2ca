"""What an export is an export of, and what its commits say of its files.

Both are parts of the files of the record log (`headwater.derived.record_log`). The definition, version 1::

    {"version": 1, "source": "<table>", "columns": ["<name>", …], "schema": "<Delta schema as JSON>",
     "where": "<condition>" or null, "asked": ["<column that only the condition reads>", …],
     "location": "<url of the folder>"}

The schema is that of the source on the day of the definition. A record has, beside what every record has::

     "files": {"<source file>": {"vector": "<id>" or null, "path": "<file of the export>" or null, "rows": <n>}, …},
     "superseded": ["<file>", …]      files that the commit before named and this one does not: deleted by the next one
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from headwater.base.schema import Schema
from headwater.derived.record import Record
from headwater.derived.sources import Input

__all__ = ["Definition", "ExportRecord", "Exported"]

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Definition:
    """Some columns of the rows of a table that meet a condition, in a folder."""

    source: str
    columns: tuple[str, ...]
    schema: str
    where: str | None
    asked: tuple[str, ...]
    location: str

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Definition:
        """Read what `to_json` gives."""
        assert found["version"] == _VERSION, "there is one version so far"
        columns, asked = (tuple(found[name]) for name in ("columns", "asked"))
        return cls(found["source"], columns, found["schema"], found["where"], asked, found["location"])

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"version": _VERSION, **asdict(self)}

    @property
    def input(self) -> Input:
        """What is read of the source."""
        return Input(self.source, self.source, Schema.from_json(self.schema).arrow, (*self.columns, *self.asked))

    @property
    def output(self) -> pa.Schema:
        """The columns of the files."""
        return pa.schema([self.input.schema.field(name).with_nullable(True) for name in self.columns])

    def __str__(self) -> str:
        condition = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {', '.join(self.columns)} FROM {self.source}{condition}"


@dataclass(frozen=True, slots=True)
class Exported:
    """The rows of a file of the source: under which vector, in which file of the export (None: no row),
    and how many.
    """

    vector: str | None
    path: str | None
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord(Record):
    """Which files of the source lie in which files of the export."""

    files: Mapping[str, Exported] = field(default_factory=dict)
    superseded: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The files of the export that hold rows."""
        return sorted(one.path for one in self.files.values() if one.path is not None)

    @classmethod
    def _own_fields(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        files = {path: Exported(**one) for path, one in found["files"].items()}
        return {"files": files, "superseded": tuple(found["superseded"])}

    def _own_json(self) -> dict[str, Any]:
        return {
            "files": {path: asdict(one) for path, one in self.files.items()},
            "superseded": list(self.superseded),
        }
