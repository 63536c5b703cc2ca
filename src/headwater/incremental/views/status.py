"""Status: what a view is, and how fresh, for people and programs. It needs nothing but logs: no query is read, no
function asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.base import markup
from headwater.base.frontier import Frontier
from headwater.derived.contract import Behind
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.record import LastRefresh, Record
from headwater.incremental.views.surroundings import Surroundings
from headwater.incremental.views.upstream import Looked, behind, lag_of
from headwater.lake.snapshot import Snapshot

__all__ = ["ViewStatus", "status_of"]


@dataclass(frozen=True, kw_only=True)
class ViewStatus:
    """What a view is, and how fresh.

    Parameters
    ----------
    query, policy, sources
        its definition
    built : bool
        whether it has rows to read
    version, rows
        of its table; rows are None where the log does not say how many
    frontier : Frontier
        the version of each source that its rows reflect
    lag : mapping of str to int or None
        by how many versions it is behind each source whose rows have changed; None for a source that is not there
    behind : sequence of Behind
        views that it reads, directly or through others, and that are behind their own sources
    last : LastRefresh, optional
        the last refresh that changed something
    """

    name: str
    query: str
    policy: str
    sources: tuple[str, ...]
    built: bool
    version: int
    rows: int | None
    frontier: Frontier
    lag: Mapping[str, int | None]
    behind: tuple[Behind, ...] = ()
    last: LastRefresh | None = None

    @property
    def stale(self) -> bool:
        """Whether a refresh would bring it newer rows, its own or those of views that it reads."""
        return not self.built or bool(self.lag) or bool(self.behind)

    @property
    def lag_text(self) -> str:
        """How far it is behind, in words."""
        if not self.built:
            return "never built"
        own = str(Behind(self.name, self.lag)).partition(" ")[2] if self.lag else ""
        return "; ".join(filter(None, [own.removeprefix("is "), *map(str, self.behind)])) or "up to date"

    def facts(self) -> list[tuple[str, str]]:
        """Names and values, as DESCRIBE EXTENDED lists them."""
        return [
            ("Type", "MATERIALIZED VIEW"),
            ("View Text", self.query),
            ("Refresh Policy", self.policy),
            ("Sources", ", ".join(self.sources)),
            ("Frontier", str(self.frontier) or "never built"),
            ("Lag", self.lag_text),
            ("Last Refresh", str(self.last or "")),
        ]

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "name": self.name,
            "query": self.query,
            "policy": self.policy,
            "sources": list(self.sources),
            "built": self.built,
            "stale": self.stale,
            "version": self.version,
            "rows": self.rows,
            "frontier": dict(self.frontier),
            "lag": dict(self.lag),
            "behind": [one.as_dict() for one in self.behind],
            "last_refresh": None if self.last is None else self.last.as_dict(),
        }

    def __str__(self) -> str:
        return "\n".join([self.name, *(f"  {name}: {value}" for name, value in self.facts()[1:] if value)])

    def _repr_html_(self) -> str:
        return markup.facts(self.name, self.facts()[1:])


def status_of(name: str, base: Snapshot, around: Surroundings, looked: Looked | None = None) -> ViewStatus:
    """The status of the view whose table this is; ``looked`` is shared by several."""
    meant, record = Definition.of(base), Record.of(base)
    assert meant is not None, "it is a view"
    looked = looked or Looked(around)
    built = bool(record.published)
    return ViewStatus(
        name=name,
        query=meant.sql,
        policy=meant.policy,
        sources=meant.reads,
        built=built,
        version=base.version,
        rows=base.num_rows if built else None,
        frontier=record.frontier,
        lag=lag_of(meant, record, looked) if built else {},
        behind=behind(meant.reads, looked),
        last=record.last,
    )
