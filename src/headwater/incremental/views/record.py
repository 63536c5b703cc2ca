"""The record: what a commit to a view's table says of the view, which makes that commit the one moment of a refresh.

It is the value of the domain ``headwater.view.state`` in the table's log, as JSON; version 2, or 3 where columns are mapped::

    {"version": 2,
     "frontier": {"<table>": <version>, …},   what the rows reflect; empty: never built
     "ids": {"<table>": "<id>", …},           which tables these were: a name may come to mean another one
     "columns": {"<table>": {"<column>": "<identity>", …}, …},   in version 3: which columns were read (`identities`)
     "state": "<manifest>" or null,           their state, or one that is a little older (`state_at`)
     "published": <version>,                  the version of the view's own table that this commit makes
     "rates": {…},                            how long things took (`costs`)
     "last": {"at": <ms>, "mode": "full", "seconds": 0.1, "rows_in": 3, "rows_out": 2},   older records lack it
     "clock": "<ISO 8601>"                    what current_timestamp() stood for; only where the policy is "full"}

Rows and frontier change together, since they are one commit, and from its state on the changes up to them can be followed again. In version 1 the
state was never older than the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from headwater.base.errors import CorruptionError
from headwater.base.frontier import Frontier
from headwater.derived.contract import Mode
from headwater.incremental.views.costs import Rates
from headwater.incremental.views.identities import Identities
from headwater.lake.actions import Action
from headwater.lake.published import STATE, domain, read_domain
from headwater.lake.snapshot import Snapshot

__all__ = ["LastRefresh", "Record"]

_KNOWN = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class LastRefresh:
    """The last refresh that changed something: when it was committed, in ms, how it was done, and what it took.

    >>> print(LastRefresh(1_700_000_000_000, "incremental", 0.0123, 3, 2))
    2023-11-14 22:13:20 UTC, incremental, 0.012 s, 3 rows in, 2 rows out
    """

    at: int
    mode: Mode
    seconds: float
    rows_in: int
    rows_out: int

    @property
    def time(self) -> datetime:
        """When it was committed."""
        return datetime.fromtimestamp(self.at / 1000, UTC)

    def __str__(self) -> str:
        return (
            f"{self.time:%Y-%m-%d %H:%M:%S} UTC, {self.mode}, {self.seconds:.3f} s, "
            f"{self.rows_in:,} rows in, {self.rows_out:,} rows out"
        )

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**asdict(self), "at": self.time.isoformat(timespec="milliseconds")}


@dataclass(frozen=True, slots=True)
class Record:
    """Which sources the rows reflect, and which state belongs to them."""

    frontier: Frontier = field(default_factory=Frontier)
    ids: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    published: int = 0
    rates: Rates = field(default_factory=Rates)
    columns: Mapping[str, Identities] = field(default_factory=dict)
    """What the columns are that were read of tables that map theirs; older records do not say."""
    last: LastRefresh | None = None
    clock: datetime | None = None
    """What current_timestamp() stood for, in a view that may read the clock."""

    @classmethod
    def of(cls, base: Snapshot) -> Record:
        """What the newest commit of a refresh says, at a version of the view's table."""
        found = read_domain(base, STATE)
        if found is None:
            return cls()
        try:
            if found["version"] not in _KNOWN:
                raise ValueError(f"its version is {found['version']}, and this Headwater knows {_KNOWN[-1]}")
            return cls(
                Frontier(found["frontier"]),
                dict(found["ids"]),
                found["state"],
                int(found["published"]),
                Rates(**found["rates"]),
                {table: dict(columns) for table, columns in found.get("columns", {}).items()},
                LastRefresh(**found["last"]) if found.get("last") is not None else None,
                datetime.fromisoformat(found["clock"]) if found.get("clock") is not None else None,
            )
        except (KeyError, TypeError, ValueError) as e:
            raise CorruptionError.state_file(f"the domain {STATE}", str(e), base.where) from e

    def action(self) -> Action:
        """The action that puts it into a commit."""
        value: dict[str, Any] = {
            "version": 3 if self.columns else 2,
            "frontier": dict(self.frontier),
            "ids": dict(self.ids),
            "state": self.state,
            "published": self.published,
            "rates": self.rates.to_json(),
        }
        if self.clock is not None:
            value["clock"] = self.clock.isoformat()
        if self.last is not None:
            value["last"] = asdict(self.last)
        if self.columns:
            value["columns"] = {table: dict(columns) for table, columns in self.columns.items()}
        return domain(STATE, value)
