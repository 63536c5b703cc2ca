"""The record of a view: what every artefact's record has (`derived.record`), and three things more::

"rates": {…},                            how long things took (`costs`)
"owed": true                             only where rows were published before there is state, which is to be built
"clock": "<ISO 8601>"                    what current_timestamp() stood for; only where the policy is "full"

**What a state is the state of** (`StateAt`): a version of the view's own table, and the versions of the sources that it
reflects, saved as ``at`` in the manifest's ``extra``. A state may be older than the view: after most changes it is
saved when the commit has been made, so that nobody waits for it, and a process that ends in between leaves the state
before. Then the changes since are read once more, and go through the circuit (`catching_up`). *Settled* is a state that
was saved after the commit that it belongs to. It counts though no commit names it. One that was saved before counts
only if a commit names it, because that commit may never have been made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from headwater.base.frontier import Frontier, TableIdentity
from headwater.derived.record import Record
from headwater.incremental.views.costs import Rates

__all__ = ["StateAt", "ViewRecord"]


@dataclass(frozen=True, slots=True)
class StateAt:
    """Where a state is.

    Parameters
    ----------
    table
        the id of the view's table
    published
        the version of that table
    frontier
        the versions of the sources, and which tables they were
    settled
        whether it was saved after that version was committed

    >>> at = StateAt("a1", 7, Frontier({"orders": 3}).identified({"orders": TableIdentity("b2")}), settled=True)
    >>> StateAt.of({"at": at.to_json()}) == at
    True
    """

    table: str
    published: int
    frontier: Frontier
    settled: bool = False

    @classmethod
    def of(cls, saved: Any) -> Self | None:
        """What a manifest says; None for one that was written before states said it,
        and belongs to the commit that names it.
        """
        at = saved.get("at") if isinstance(saved, dict) else None
        if at is None:
            return None
        identities = {table: TableIdentity(id_) for table, id_ in at["ids"].items()}
        frontier = Frontier(at["frontier"]).identified(identities)
        return cls(str(at["table"]), int(at["published"]), frontier, settled=at["settled"])

    def to_json(self) -> Any:
        """What is saved."""
        return {
            "table": self.table,
            "published": self.published,
            "frontier": dict(self.frontier),
            "ids": {table: one.id for table, one in self.frontier.identities.items()},
            "settled": self.settled,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRecord(Record):
    """Which sources the rows of a view reflect, which state belongs to them, and what refreshes have taken."""

    rates: Rates = field(default_factory=Rates)
    owed: bool = False
    """Whether its rows came from a query, and state is being built behind them, or is still to be."""
    clock: datetime | None = None
    """What current_timestamp() stood for, in a view that may read the clock."""

    @classmethod
    def _own_fields(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        clock = found.get("clock")
        return {
            "rates": Rates(**found["rates"]),
            "owed": bool(found.get("owed", False)),
            "clock": None if clock is None else datetime.fromisoformat(clock),
        }

    def _own_json(self) -> dict[str, Any]:
        own: dict[str, Any] = {"rates": self.rates.to_json(), **({"owed": True} if self.owed else {})}
        return own if self.clock is None else {**own, "clock": self.clock.isoformat()}
