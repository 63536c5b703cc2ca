"""Alignment: which column of one definition of a table each column of another one is.

A table's definition changes: columns are added, renamed, dropped and widened, and a replaced table may be partitioned
otherwise, or map its columns where it did not. Data files keep the layout of the definition they were written under.
To read such a file under another definition, each column asked for is matched with the column that it was then:

- under column mapping a column is its name inside data files, which it keeps for life: one that was dropped and added
  again under its old name is another column;
- without column mapping a column is its name, whatever its case;
- where the older definition has no column mapping and the newer one has, the name inside files is the name of then;
- where column mapping was given up, a column is the one that had its name.

The same rules hold for the fields of structs. A column without a match is null in those files, but for one thing: a
column that was dropped and has been restored since is found in files by its name there, whatever the definition
between said, since its values never went.

>>> old = Schema((Field("a", "integer", True, {"delta.columnMapping.physicalName": "c1"}),))
>>> new = Field("b", "long", True, {"delta.columnMapping.physicalName": "c1"})
>>> counterpart(new, old.fields, mapped=True, theirs_mapped=True).name
'a'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headwater.base.schema import DeltaType, Field, Schema
from headwater.lake.actions import Metadata
from headwater.lake.definition import is_mapped, is_wider

__all__ = ["Aligned", "align", "counterpart", "identity"]

_PHYSICAL = "delta.columnMapping.physicalName"
_INNER = ("elementType", "keyType", "valueType")
_ABSENT = "\0"  # no column of a file has this name


def identity(f: Field, *, mapped: bool) -> str:
    """What a column is told apart by within its table."""
    return f.physical_name if mapped else f.name.lower()


def counterpart(f: Field, fields: Sequence[Field], *, mapped: bool, theirs_mapped: bool) -> Field | None:
    """The one of ``fields``, of another definition, that ``f`` was; None if it was not there.

    ``mapped`` says whether the definition of ``f`` maps its columns, ``theirs_mapped`` whether that of ``fields`` does.
    """
    if mapped:
        return next((g for g in fields if (g.physical_name if theirs_mapped else g.name) == f.physical_name), None)
    return next((g for g in fields if g.name.lower() == f.name.lower()), None)


class Aligned:
    """The columns of a definition as the files of another one hold them."""

    def __init__(self, now: Metadata, then: Metadata) -> None:
        self.then = then
        self._now_mapped, self._then_mapped = is_mapped(now.configuration), is_mapped(then.configuration)

    def was(self, f: Field) -> Field | None:
        """The column of then that the column ``f`` of now is."""
        return self._match(f, self.then.schema.fields)

    def in_file(self, f: Field) -> Field | None:
        """The column as files of then may hold it: that of then, or one that was dropped before."""
        return self.was(f) or (f if self._now_mapped and self._then_mapped else None)

    def _match(self, f: Field, fields: Sequence[Field]) -> Field | None:
        return counterpart(f, fields, mapped=self._now_mapped, theirs_mapped=self._then_mapped)

    def in_files(self, now: DeltaType, then: DeltaType) -> DeltaType:
        """The type ``now`` with each field of a struct known by the name it has inside the files of then."""
        if isinstance(now, str) or isinstance(then, str) or now["type"] != then["type"]:
            return now
        if now["type"] == "struct":
            theirs = [Field.from_json(f) for f in then["fields"]]
            fields = [self._renamed(f, self._match(f, theirs)) for f in map(Field.from_json, now["fields"])]
            return {**now, "fields": [f.to_json() for f in fields]}
        return {k: self.in_files(v, then[k]) if k in _INNER else v for k, v in now.items()}

    def _renamed(self, f: Field, was: Field | None) -> Field:
        if was is None:
            dropped = self._now_mapped and self._then_mapped
            return f if dropped else replace(f, metadata={**f.metadata, _PHYSICAL: _ABSENT})
        name = was.physical_name if self._then_mapped else was.name
        return replace(f, type=self.in_files(f.type, was.type), metadata={**f.metadata, _PHYSICAL: name})

    def is_readable(self, now: DeltaType, then: DeltaType) -> bool:
        """Whether values written as ``then`` are still what they were when they are read as ``now``."""
        if isinstance(then, str) or isinstance(now, str):
            return then == now or (isinstance(then, str) and isinstance(now, str) and is_wider(then, now))
        if then["type"] != now["type"]:
            return False
        if now["type"] == "struct":
            theirs = [Field.from_json(f) for f in then["fields"]]
            pairs = [(f, self._match(f, theirs)) for f in map(Field.from_json, now["fields"])]
            return all(was is None or self.is_readable(f.type, was.type) for f, was in pairs)
        return all(self.is_readable(now[k], then[k]) for k in _INNER if k in now)


def align(now: Metadata, then: Metadata | None) -> Aligned | None:
    """The alignment of two definitions; None if files of then are read as those of now."""
    if then is None or _shape(then) == _shape(now):
        return None
    return Aligned(now, then)


def _shape(metadata: Metadata) -> tuple[Schema, Sequence[str], Mapping[str, str] | str]:
    mode = metadata.configuration.get("delta.columnMapping.mode", "none")
    return metadata.schema, metadata.partition_columns, mode
