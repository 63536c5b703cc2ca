"""Nodes: names of the lake. Each stands for a table, or for something derived, with or without a table of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.base.errors import NotFoundError
from headwater.derived.dependencies import dependants, upstream_first
from headwater.derived.lookup import Lookup

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.port import DerivingLake
    from headwater.lake.snapshot import Snapshot
    from headwater.lake.table import Table

__all__ = ["Lineage", "Node", "node"]


@dataclass(frozen=True, slots=True)
class Node:
    """A name of the lake, and what stands for it.

    Parameters
    ----------
    name : str
    table : Table, optional
        the table of its rows; an export, for example, has none
    artefact : Artefact, optional
        what it is as something derived; None for a plain table
    """

    name: str
    table: Table | None
    artefact: Artefact | None

    @property
    def kind(self) -> str:
        """What it is called: ``table``, or the name of the kind."""
        return "table" if self.artefact is None else self.artefact.kind.name

    @property
    def base(self) -> Snapshot:
        """The newest version of its table."""
        assert self.table is not None, "it has a table"
        return self.table.snapshot


def node(lake: DerivingLake, name: str, lookup: Lookup | None = None) -> Node:
    """What a name stands for; an error if it stands for nothing."""
    environment = lake.environment()
    lookup = lookup or Lookup(environment)
    table = environment.table(name)
    there = table.current()
    artefact = lookup.artefact(table.name)
    if there is None and artefact is None:
        known = sorted({*lake.catalog.names(), *environment.artefacts()})
        raise NotFoundError.table(name, known, environment.root.url)
    return Node(table.name, None if there is None else table, artefact)


class Lineage:
    """What reads what, in one lake."""

    def __init__(self, lake: DerivingLake) -> None:
        self.lookup = Lookup(lake.environment())
        self.reads: dict[str, Sequence[str]] = {
            name: self.lookup.reads(name) or () for name in sorted(lake.environment().artefacts())
        }

    def downstream(self, name: str) -> list[str]:
        """The artefacts that read a name, directly or through others, each after those that it reads."""
        return list(reversed(dependants([name], self.reads)))

    def ordered(self, names: Sequence[str]) -> list[str]:
        """Some artefacts, each after those that it reads."""
        wanted = set(names)
        return [name for name in upstream_first(names, self.reads.get) if name in wanted]
