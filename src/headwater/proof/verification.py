"""Verification: is everything derived what its sources say it should be?

Each artefact is computed once more at its frontier, from its sources alone, and held against what it has
(`derived.comparison`): equal sums of hashes for each partition of the rows prove that they are the same, and where sums
differ, the rows of those partitions are compared one by one. A view of many rows is recomputed by Spark's own SQL,
which shares no code with the circuit that keeps it, nor with the engine that verifies small ones; there tasks add up
the hashes, and the driver is sent sums (`on_spark`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from headwater.base import markup
from headwater.base.errors import HeadwaterError, InputError, NotFoundError
from headwater.base.kinds import ARTEFACT
from headwater.derived.lookup import Lookup
from headwater.derived.reports import Verification
from headwater.incremental.views import View
from headwater.proof.nodes import Lineage

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.port import DerivingLake

__all__ = ["Engine", "Verifications", "Verified", "verify"]

Engine = Literal["auto", "duckdb", "spark"]

_LARGE_ROWS = 5_000_000
"""A view of so many rows, its sources' and its own, is verified by Spark where the lake has a session."""


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What was found of one artefact.

    Parameters
    ----------
    name, kind : str
    engine : str
        who recomputed it: ``duckdb``, ``spark``, or ``local`` for kinds that no query engine computes
    found : Verification, optional
        None where it could not be verified, or was never built
    seconds : float
    note : str
        what a reader has to know
    error : HeadwaterError, optional
        why it could not be verified
    """

    name: str
    kind: str
    engine: str
    found: Verification | None
    seconds: float
    note: str = ""
    error: HeadwaterError | None = None

    @property
    def state(self) -> Literal["equal", "differs", "failed", "never built"]:
        """What came of it."""
        if self.error is not None:
            return "failed"
        return "never built" if self.found is None else "equal" if self.found.equal else "differs"

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        facts: dict[str, object] = {
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "engine": self.engine,
            "seconds": round(self.seconds, 6),
            "note": self.note,
        }
        if self.found is not None:
            facts |= self.found.as_dict()
        if self.error is not None:
            facts["error"] = self.error.as_dict()
        return facts


@dataclass(frozen=True)
class Verifications:
    """What was found of several artefacts, each after those that it reads."""

    all: tuple[Verified, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing differs, and nothing failed."""
        return all(one.state in ("equal", "never built") for one in self.all)

    def __iter__(self) -> Iterator[Verified]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, name: str) -> Verified:
        for one in self.all:
            if one.name == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        return "\n".join(
            f"{one.name}: {one.error.message if one.error else one.found or one.state}" for one in self.all
        )

    def _repr_html_(self) -> str:
        headings = ("name", "kind", "state", "rows", "frontier", "engine", "seconds", "note")
        return markup.listing("verified", headings, [_row(one) for one in self.all])


def verify(lake: DerivingLake, *names: str, engine: Engine = "auto") -> Verifications:
    """Recompute some artefacts at their frontiers, or all, and hold what they have against that.

    Parameters
    ----------
    engine
        who recomputes views: "duckdb" in this process, "spark" by its own SQL, or "auto": Spark where the lake has a
        session and there are millions of rows. Other kinds are recomputed in this process, as a stream.

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> _ = lake.write("orders", [{"id": 1, "amount": 10}])
    >>> _ = lake.view("total", "SELECT sum(amount) AS total FROM orders", refresh=True)
    >>> print(lake.verify())
    total: equal at orders@0 (1 row)
    """
    if engine not in get_args(Engine):
        raise InputError.bad_argument("engine", engine, f"one of {', '.join(get_args(Engine))}")
    lineage = Lineage(lake)
    environment = lake.environment()
    asked = [_known(name, lineage, lake) for name in names] or list(lineage.reads)
    found = []
    for name in lineage.ordered(asked):
        lookup = Lookup(environment)  # what was looked at for one that took long is old for the next
        artefact = lookup.artefact(name)
        if artefact is None:
            raise NotFoundError.derived(name, ARTEFACT, sorted(lineage.reads), environment.root.url)
        found.append(_verified(lake, artefact, engine))
    return Verifications(tuple(found))


def _known(name: str, lineage: Lineage, lake: DerivingLake) -> str:
    if name in lineage.reads:
        return name
    found = lake.environment().table(name).name
    if found not in lineage.reads:
        raise NotFoundError.derived(name, ARTEFACT, sorted(lineage.reads), lake.environment().root.url)
    return found


def _verified(lake: DerivingLake, artefact: Artefact, engine: Engine) -> Verified:
    began, used, note = time.perf_counter(), "duckdb" if isinstance(artefact, View) else "local", ""
    found, error = None, None
    try:
        if artefact.built:
            why = _why_not_spark(lake, artefact, engine)
            if why is None and isinstance(artefact, View):
                from headwater.proof.on_spark import verify_view

                used = "spark"
                found, note = verify_view(lake, artefact)
            else:
                note = why or ""
                found = artefact.verify()
    except HeadwaterError as raised:
        error = raised
    seconds = time.perf_counter() - began
    return Verified(
        name=artefact.name, kind=artefact.kind.name, engine=used, found=found, seconds=seconds, note=note, error=error
    )


def _why_not_spark(lake: DerivingLake, artefact: Artefact, engine: Engine) -> str | None:
    """Why Spark does not recompute it, for people, or nothing to say; None where it does."""
    if engine == "duckdb" or not isinstance(artefact, View):
        return ""
    if engine == "auto" and (lake.environment().session is None or _rows(lake, artefact) < _LARGE_ROWS):
        return ""
    return artefact.why_not_elsewhere()


def _rows(lake: DerivingLake, artefact: Artefact) -> int:
    """About how many rows a recomputation reads and gives."""
    environment = lake.environment()
    tables = [environment.table(name).current() for name in artefact.reads]
    return (artefact.rows or 0) + sum(0 if one is None else one.num_rows or 0 for one in tables)


def _row(one: Verified) -> Sequence[object]:
    found = one.found
    said = one.error.message if one.error is not None else one.note
    frontier, rows = ("", "") if found is None else (str(found.frontier), f"{found.rows:,}")
    return (one.name, one.kind, one.state, rows, frontier, one.engine, f"{one.seconds:.3f}", said)
