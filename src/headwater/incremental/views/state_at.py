"""What a state is the state of: a version of the view's own table, and the versions of the sources that it reflects.

It is saved with the state, as ``at`` in the manifest's ``extra``. A state may be older than the view: after most changes it is saved when the
commit has been made, so that nobody waits for it, and a process that ends in between leaves the state before. Then the changes since are read
once more, and go through the circuit (`catching_up`).

*Settled* is a state that was saved after the commit that it belongs to. It counts though no commit names it. One that was saved before counts if a
commit names it, because that commit may never have been made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from headwater.base.frontier import Frontier, TableIdentity

__all__ = ["StateAt"]


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
        """What a manifest says; None for one that was written before states said it, and belongs to the commit that names it."""
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
