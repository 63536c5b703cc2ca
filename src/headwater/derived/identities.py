"""Identities: which table a name stood for when it was read, and which columns.

A table that is dropped and made again under its name has another id in its log. Under column mapping a column has a name
inside the data files that it never gives up; one that was dropped and added again under its old name is another column,
of the same name and type, and old files read under the new schema would give values that were never read before. So a
frontier keeps, with each version, the id of the table and the names inside files of the columns that were read, those of
nested fields with them. Without column mapping a column is its name, and only the table's id is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.base.frontier import TableIdentity
from headwater.base.schema import DeltaType, Field
from headwater.lake.snapshot import Snapshot

__all__ = ["column_identities", "differing", "identity_of"]


def identity_of(base: Snapshot, columns: Iterable[str]) -> TableIdentity:
    """Which table this is, and what the columns are that are read of it."""
    mapped = base.mapping_mode != "none"
    return TableIdentity(base.state.metadata.id, column_identities(base, columns) if mapped else {})


def column_identities(base: Snapshot, columns: Iterable[str]) -> dict[str, str]:
    """What some columns of a table are; those that it does not have are left out."""
    mapped = base.mapping_mode != "none"
    known = {f.name.lower(): f for f in base.schema.fields}
    names = sorted({c.lower() for c in columns})
    return {name: _identity(known[name], mapped=mapped) for name in names if name in known}


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The columns that were something else, or are not there any more."""
    return [name for name, was in old.items() if new.get(name) != was]


def _identity(f: Field, *, mapped: bool) -> str:
    return (f.physical_name if mapped else f.name) + _inside(f.type, mapped=mapped)


def _inside(dtype: DeltaType, *, mapped: bool) -> str:
    if isinstance(dtype, str):
        return ""
    if dtype["type"] == "struct":
        return "(" + ",".join(_identity(Field.from_json(f), mapped=mapped) for f in dtype["fields"]) + ")"
    return "".join(_inside(dtype[k], mapped=mapped) for k in ("elementType", "keyType", "valueType") if k in dtype)
