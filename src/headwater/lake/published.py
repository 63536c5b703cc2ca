"""Published tables: which tables are the output of something derived, and what their log says of it.

A materialized view publishes its rows as a Delta table. What belongs to the view stands in the table's own log, as metadata of
two domains, so that a commit of rows is also the commit of what they reflect:

- ``headwater.view``: the definition, written when the view is made or changed;
- ``headwater.view.state``: the frontier and the state, written by every refresh.

Other engines keep the domains and read the rows. Who changes such a table by hand makes it differ from what it is derived from, so
statements and methods that would are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headwater.base.errors import CorruptionError, InputError
from headwater.lake.actions import Action
from headwater.lake.snapshot import Snapshot

__all__ = [
    "DEFINITION",
    "STATE",
    "check_built",
    "check_editable",
    "check_properties",
    "domain",
    "is_built",
    "is_view",
    "read_domain",
]

DEFINITION = "headwater.view"
STATE = "headwater.view.state"
# What the table of a view has to be, and why.
_NEEDED = {
    "delta.appendOnly": ("false", "a refresh deletes the rows that a view has no more"),
    "delta.enableChangeDataFeed": ("true", "a refresh says which rows it changed"),
    "delta.enableDeletionVectors": ("true", "a refresh marks the rows that it deletes"),
}


def is_view(base: Snapshot) -> bool:
    """Whether a table is the output of a materialized view."""
    return DEFINITION in base.state.domains


def is_built(base: Snapshot) -> bool:
    """Whether a table has the rows of what it is the output of; a table that is nobody's output has its own."""
    return STATE in base.state.domains or not is_view(base)


def check_built(name: str, base: Snapshot) -> None:
    """Raise if a table is a view's that was never built: that it has no rows would say something about its query."""
    if not is_built(base):
        raise InputError.not_built(name or base.where, base.version, base.where)


def check_editable(name: str, base: Snapshot, verb: str) -> None:
    """Raise if a table is a view's, whose rows nobody changes but its refreshes."""
    if is_view(base):
        raise InputError.is_view(name, verb)


def check_properties(properties: Mapping[str, str | None]) -> None:
    """Raise for a property, set or (with None) taken away, without which a view's table cannot be refreshed."""
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
