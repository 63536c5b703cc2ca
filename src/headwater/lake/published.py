"""Published tables: which tables are the output of something derived, and what their log says of it.

A derived artefact whose rows are a Delta table, such as a materialized view, keeps what belongs to it in the table's
own log, as metadata of two domains, so that a commit of rows is also the commit of what they reflect:

- ``headwater.<kind>``: the definition, written when the artefact is made or changed;
- ``headwater.<kind>.state``: the frontier and the state, written by every refresh.

This room knows the form of these names, and no kind. Other engines keep the domains and read the rows. Changing such a
table by hand would make it differ from what it is derived from, so statements and methods that would are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.base.errors import CorruptionError, InputError
from headwater.base.kinds import words_of
from headwater.lake.actions import Action, AddFile, RemoveFile
from headwater.lake.snapshot import Snapshot

__all__ = [
    "Changed",
    "check_built",
    "check_editable",
    "check_properties",
    "definition_domain",
    "domain",
    "is_built",
    "is_derived",
    "kind_of",
    "read_domain",
    "state_domain",
]

_DEFINITION = re.compile(r"headwater\.([a-z_]+)")
# What the table of an artefact has to be, and why.
_NEEDED = {
    "delta.appendOnly": ("false", "a refresh deletes the rows that are gone"),
    "delta.enableChangeDataFeed": ("true", "a refresh says which rows it changed"),
    "delta.enableDeletionVectors": ("true", "a refresh marks the rows that it deletes"),
}


@dataclass(slots=True)
class Changed:
    """The actions of a commit, and how many rows they insert and delete."""

    adds: list[AddFile] = field(default_factory=list)
    removes: list[RemoveFile] = field(default_factory=list)
    cdc: list[Action] = field(default_factory=list)
    inserted: int = 0
    deleted: int = 0
    unflushed: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows are inserted or deleted."""
        return self.inserted + self.deleted


def definition_domain(kind: str) -> str:
    """The domain of the definitions of a kind."""
    return f"headwater.{kind}"


def state_domain(kind: str) -> str:
    """The domain of the records of a kind."""
    return f"headwater.{kind}.state"


def kind_of(base: Snapshot) -> str | None:
    """The name of the kind whose output a table is; None if it is nobody's."""
    found = (_DEFINITION.fullmatch(name) for name in base.state.domains)
    return next((match[1] for match in found if match), None)


def is_derived(base: Snapshot) -> bool:
    """Whether a table is the output of a derived artefact."""
    return kind_of(base) is not None


def is_built(base: Snapshot) -> bool:
    """Whether a table has the rows of what it is the output of; a table that is nobody's output has its own."""
    kind = kind_of(base)
    return kind is None or state_domain(kind) in base.state.domains


def check_built(name: str, base: Snapshot) -> None:
    """Raise if a table is an artefact's that was never built: that it has no rows would say something about it."""
    if not is_built(base):
        raise InputError.not_built(name or base.where, base.version, base.where, words_of(kind_of(base) or ""))


def check_editable(name: str, base: Snapshot, verb: str) -> None:
    """Raise if a table is an artefact's, whose rows are changed only by its refreshes."""
    kind = kind_of(base)
    if kind is not None:
        raise InputError.is_derived(name, words_of(kind), verb)


def check_properties(properties: Mapping[str, str | None]) -> None:
    """Raise for a property, set or (with None) taken away, without which an artefact's table cannot be refreshed."""
    for name, value in properties.items():
        wanted, why = _NEEDED.get(name, (None, ""))
        if wanted is None or (value is None and wanted == "false"):
            continue
        if str(value).lower() != wanted:
            raise InputError.bad_property(name, "nothing" if value is None else value, f"{wanted}: {why}")


def domain(name: str, value: Any) -> Action:
    """The action that gives a domain a new value, as JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}


def read_domain(base: Snapshot, name: str) -> Any:
    """The value of a domain, or None if the table does not have it."""
    body = base.state.domains.get(name)
    if body is None:
        return None
    try:
        return json.loads(body["configuration"])
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptionError.state_file(f"the domain {name}", "it is not JSON", base.where) from e
