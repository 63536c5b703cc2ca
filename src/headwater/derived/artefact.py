"""Artefacts: derived things of a lake. What a kind supplies, and what all of them offer.

`Handle` has what is the same for every kind; the rooms that put artefacts in order and show them need only this.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import pyarrow as pa

from headwater.base.frontier import Frontier
from headwater.base.kinds import KindWords
from headwater.derived.contract import Derived
from headwater.derived.environment import Environment
from headwater.derived.plan import RefreshPlan
from headwater.derived.publishes import Publish, publishes_of_table
from headwater.derived.record import Record
from headwater.derived.reports import Refresh
from headwater.derived.status import Status
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot

__all__ = ["Artefact"]


class Artefact(Derived):
    """A derived artefact of a lake: a handle on it."""

    kind: ClassVar[KindWords]
    """What artefacts of this kind are called."""

    def __init__(self, name: str, environment: Environment) -> None:
        self._name = name
        self._environment = environment

    @property
    def name(self) -> str:
        """The name of the artefact."""
        return self._name

    @property
    def environment(self) -> Environment:
        """The lake as it sees it."""
        return self._environment

    # -- what a kind supplies --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The names of the tables that its definition names, sorted; known from the definition alone."""

    @property
    @abstractmethod
    def record(self) -> Record:
        """What its newest commit says."""

    @abstractmethod
    def refresh_alone(
        self,
        until: Frontier | None,
        *,
        full: bool = False,
        newest: Mapping[str, Snapshot] = MappingProxyType({}),
    ) -> Refresh:
        """Bring it forward, and nothing that it reads; ``newest`` are sources that were looked at already."""

    @abstractmethod
    def plan_alone(
        self,
        until: Frontier | None,
        *,
        newest: Mapping[str, Snapshot] = MappingProxyType({}),
        first: Sequence[str] = (),
    ) -> RefreshPlan:
        """What `refresh_alone` would do; ``first`` are sources that will have been refreshed by then."""

    @abstractmethod
    def delete(self) -> None:
        """Delete it with all that belongs to it, whoever reads it."""

    @property
    def version(self) -> int:
        """The version of its output."""
        return self.record.published

    @property
    def rows(self) -> int | None:
        """How many rows it has, if that is known without counting."""
        return None

    def of_rows(self, rows: pa.Table) -> pa.Table | None:
        """What it has of some rows of its source, if it is a function of each row by itself; None where it is not."""
        return None

    def recompute_over(self, at: Frontier, instead: Mapping[str, Relation]) -> pa.RecordBatchReader | None:
        """What `recompute` would give at ``at``, were the rows of some sources others; None where it cannot tell."""
        return None

    def found(self, rows: pa.Table) -> list[dict[str, object]]:
        """Where rows of it are found now, as whoever asks it would find them: facts for people, one for each place."""
        return []

    def purge(self) -> None:
        """Write what it keeps of its sources anew, and delete what that replaces at once, whoever may be reading it.

        Afterwards none of its own files holds what its sources, as far as its frontier, do not have. What older
        versions of its table hold is not meant (`headwater.lake.erasure`).
        """
        self.refresh_alone(None, full=True)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell its rows apart; none where that is not known."""
        return ()

    def carried(self, table: str, columns: Sequence[str]) -> Mapping[str, str] | None:
        """For each column of a key of a source, its own column that holds it in every row that depends on rows with the
        key; None where the rows that depend on them cannot be told by their columns.
        """
        return None

    def publishes(self) -> list[Publish]:
        """The commits by which it came to be what it is, oldest first, as far as the log still has them."""
        base = self._environment.table(self._name).current()
        return [] if base is None else publishes_of_table(base, self.kind.name)

    # -- what all of them offer ------------------------------------------------------------------------------------

    @property
    def frontier(self) -> Frontier:
        """The version of each source that it reflects, and of which tables;
        without entries while it was never built.
        """
        return self.record.frontier

    @property
    def built(self) -> bool:
        """Whether it was ever built."""
        return bool(self.record.published)

    @abstractmethod
    def refresh(self, until: Frontier | None = None, *, full: bool = False, cascade: bool = True) -> Refresh:
        """Bring it forward to ``until`` (default: the newest version of each source),
        after the artefacts that it reads.
        """

    @abstractmethod
    def status(self) -> Status:
        """What it is, and how fresh."""

    @abstractmethod
    def create_statement(self) -> str:
        """The statement that would make an artefact like this one."""

    @abstractmethod
    def drop(self, *, cascade: bool = False) -> list[str]:
        """Delete it, with ``cascade`` after the artefacts that read it; gives the names of what was deleted."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.frontier or 'never built'})"
