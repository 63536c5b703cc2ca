"""Status: what an artefact is, and how fresh, for people and programs. It needs nothing but logs and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.base import markup
from headwater.base.frontier import Frontier
from headwater.base.kinds import KindWords
from headwater.derived.record import LastRefresh
from headwater.derived.reports import Behind

__all__ = ["Status"]


@dataclass(frozen=True, kw_only=True)
class Status:
    """What an artefact is, and how fresh.

    Parameters
    ----------
    kind : KindWords
        what artefacts of its kind are called
    definition : str
        what it is derived from its sources by
    sources : tuple of str
        the names that the definition reads
    built : bool
        whether it has rows to read
    version, rows
        of its output; rows are None where they are not known without counting
    frontier : Frontier
        the version of each source that it reflects
    lag : mapping of str to int or None
        by how many versions it is behind each source whose rows have changed; None for a source that is not there
    behind : sequence of Behind
        artefacts that it reads, directly or through others, and that are behind their own sources
    last : LastRefresh, optional
        the last refresh that changed something
    """

    name: str
    kind: KindWords
    definition: str
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
        """Whether a refresh would bring it newer rows, its own or those of artefacts that it reads."""
        return not self.built or bool(self.lag) or bool(self.behind)

    @property
    def lag_text(self) -> str:
        """How far it is behind, in words."""
        if not self.built:
            return "never built"
        own = str(Behind(self.name, self.lag)).partition(" ")[2] if self.lag else ""
        return "; ".join(filter(None, [own.removeprefix("is "), *map(str, self.behind)])) or "up to date"

    def _own_facts(self) -> list[tuple[str, str]]:
        """What defines it, as DESCRIBE EXTENDED lists it."""
        return [("Definition", self.definition)]

    def _own_dict(self) -> dict[str, Any]:
        """What defines it, for ``--json``."""
        return {"definition": self.definition}

    def facts(self) -> list[tuple[str, str]]:
        """Names and values, as DESCRIBE EXTENDED lists them."""
        return [
            ("Type", self.kind.sql),
            *self._own_facts(),
            ("Sources", ", ".join(self.sources)),
            ("Frontier", str(self.frontier) or "never built"),
            ("Lag", self.lag_text),
            ("Last Refresh", str(self.last or "")),
        ]

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "name": self.name,
            "kind": self.kind.name,
            **self._own_dict(),
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
