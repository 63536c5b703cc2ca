"""The record: what the commit of a refresh says of an artefact, which makes that commit the one moment of the refresh.

It is JSON. Where the output is a Delta table it is the value of the domain ``headwater.<kind>.state`` in the table's
log; where it is not, it is a part of a file of the `record_log`. Version 2, or 3 where columns are mapped::

    {"version": 2,
     "frontier": {"<table>": <version>, …},   what the artefact reflects; empty: never built
     "ids": {"<table>": "<id>", …},           which tables these were: a name may come to mean another one
     "columns": {"<table>": {"<column>": "<identity>", …}, …},   in version 3: which columns were read (`sources`)
     "state": "<manifest>" or null,           the state that belongs to it, or one that is a little older
     "published": <version>,                  the version of the output that this commit makes
     "last": {"at": <ms>, "mode": "full", "seconds": 0.1, "rows_in": 3, "rows_out": 2},   older records lack it
     …}                                       and what a kind adds

Data and frontier change together, since they are one commit. A kind adds fields by subclassing `Record` (`_own_fields`,
`_own_json`). In version 1, which only views have, the state was never older than the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from headwater.base.errors import CorruptionError
from headwater.base.frontier import Frontier, TableIdentity
from headwater.derived.reports import Mode
from headwater.lake.published import kind_of, read_domain, state_domain
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Which sources an artefact reflects, and which state belongs to it.

    Parameters
    ----------
    frontier : Frontier
        versions of the sources, with the identity of each
    state : str, optional
        the name of the state that belongs to it
    published : int
        the version of the output; 0: it was never built
    last : LastRefresh, optional
        the last refresh that changed something
    """

    frontier: Frontier = field(default_factory=Frontier)
    state: str | None = None
    published: int = 0
    last: LastRefresh | None = None

    @classmethod
    def of(cls, base: Snapshot) -> Self:
        """What the newest refresh wrote, at a version of an artefact's table."""
        kind = kind_of(base)
        name = state_domain(kind or "")
        found = read_domain(base, name)
        return cls() if found is None else cls.from_json(found, f"the domain {name}", base.where)

    @classmethod
    def from_json(cls, found: Any, what: str, where: str) -> Self:
        """Read a record of any version; ``what`` and ``where`` say where it was found."""
        try:
            if found["version"] not in _KNOWN:
                raise ValueError(f"its version is {found['version']}, and this Headwater knows {_KNOWN[-1]}")
            columns = found.get("columns", {})
            identities = {
                table: TableIdentity(id_, dict(columns.get(table, {}))) for table, id_ in found["ids"].items()
            }
            return cls(
                frontier=Frontier(found["frontier"]).identified(identities),
                state=found["state"],
                published=int(found["published"]),
                last=LastRefresh(**found["last"]) if found.get("last") is not None else None,
                **cls._own_fields(found),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as e:
            raise CorruptionError.state_file(what, str(e), where) from e

    def to_json(self) -> dict[str, Any]:
        """The inverse of `from_json`."""
        identities = self.frontier.identities
        columns = {table: dict(one.columns) for table, one in identities.items() if one.columns}
        value: dict[str, Any] = {
            "version": 3 if columns else 2,
            "frontier": dict(self.frontier),
            "ids": {table: one.id for table, one in identities.items()},
            "state": self.state,
            "published": self.published,
            **self._own_json(),
        }
        if self.last is not None:
            value["last"] = asdict(self.last)
        if columns:
            value["columns"] = columns
        return value

    @classmethod
    def _own_fields(cls, found: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG003  a kind reads it
        """The fields that a kind adds."""
        return {}

    def _own_json(self) -> dict[str, Any]:
        """What a kind adds to the JSON object."""
        return {}
