"""Identities: which columns the names that a view reads stood for.

Under column mapping a column has a name inside data files that it never gives up. A column that was renamed, or dropped and added again under
its old name, is another one, of the same name and type; its old files, read under the new schema, would give values that the view has never seen.
So a record keeps the names inside files of the columns that were read, those of nested fields with them. Without column mapping a column is its
name, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.base.schema import DeltaType, Field
from headwater.lake.snapshot import Snapshot

__all__ = ["Identities", "differing", "identities"]

Identities = Mapping[str, str]
"""What each column is, by its name in small letters."""


def identities(base: Snapshot, columns: Iterable[str]) -> dict[str, str]:
    """What some columns of a table are; those that it does not have are left out."""
    mapped = base.mapping_mode != "none"
    known = {f.name.lower(): f for f in base.schema.fields}
    names = sorted({c.lower() for c in columns})
    return {name: _identity(known[name], mapped=mapped) for name in names if name in known}


def differing(old: Identities, new: Identities) -> list[str]:
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
