"""Handles: what is the same for artefacts of every kind.

From the parts that a kind supplies (`Artefact`) follow refreshes that bring what it reads forward first, plans of them,
lag, status, and drops that do not take the source from under a reader.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headwater.base.errors import InputError, UnsupportedError
from headwater.base.frontier import Frontier
from headwater.derived.artefact import Artefact
from headwater.derived.cascade import plan_with_upstream, refresh_with_upstream
from headwater.derived.lookup import Lookup, behind, lag_of
from headwater.derived.plan import RefreshPlan
from headwater.derived.removal import drop_readers
from headwater.derived.reports import Behind, Refresh, Verification
from headwater.derived.status import Status

__all__ = ["Handle"]


class Handle(Artefact):
    """A handle on a derived artefact of a lake."""

    def refresh(self, until: Frontier | None = None, *, full: bool = False, cascade: bool = True) -> Refresh:
        """Bring it forward to ``until`` (default: the newest version of each source), after the artefacts that it
        reads.

        Parameters
        ----------
        until
            versions of tables, and of artefacts that are read. An artefact that it names is read at that version and
            not refreshed; one that it does not name is refreshed as far as ``until`` allows (`cascade`).
        full
            compute it from scratch, whatever has changed. What it reads is refreshed as usual.
        cascade
            refresh the artefacts that it reads first. Their reports are the ``upstream`` of this one. Without it, the
            report's ``behind`` names those that have not read the newest rows.
        """
        _check_until(until)
        if cascade:
            return refresh_with_upstream(self, self._environment, until, full=full)
        done = self.refresh_alone(until, full=full)
        left = self.upstream_behind() if until is None else ()
        if left and done.mode == "noop":
            done = replace(done, reason=f"{done.reason} in what it reads, which is behind itself")
        return replace(done, behind=left)

    def plan(self, until: Frontier | None = None, *, cascade: bool = True) -> RefreshPlan:
        """What `refresh` would do now, why, and what it is expected to take."""
        _check_until(until)
        if cascade:
            return plan_with_upstream(self, self._environment, until)
        found = self.plan_alone(until)
        return replace(found, behind=self.upstream_behind() if until is None else ())

    def lag(self) -> dict[str, int | None]:
        """By how many versions it is behind each source whose rows have changed; None for a source that is gone."""
        return lag_of(self, Lookup(self._environment))

    def upstream_behind(self) -> tuple[Behind, ...]:
        """The artefacts that it reads, directly or through others, and that are behind their own sources."""
        return behind(self.reads, Lookup(self._environment))

    def verify(self) -> Verification:
        """Hold it against a recomputation at its frontier; ``behind`` names what it reads that is behind itself."""
        return replace(super().verify(), behind=self.upstream_behind())

    def status(self, lookup: Lookup | None = None) -> Status:
        """What it is, and how fresh; ``lookup`` is shared by several."""
        return Status(**self._status_fields(lookup or Lookup(self._environment)))

    def _status_fields(self, lookup: Lookup) -> dict[str, Any]:
        built = self.built
        return {
            "name": self.name,
            "kind": self.kind,
            "definition": self.definition,
            "sources": self.reads,
            "built": built,
            "version": self.version,
            "rows": self.rows if built else None,
            "frontier": self.frontier,
            "lag": lag_of(self, lookup) if built else {},
            "behind": behind(self.reads, lookup),
            "last": self.record.last,
        }

    def create_statement(self) -> str:
        """The statement that would make an artefact like this one."""
        raise UnsupportedError.operation(
            f"SHOW CREATE TABLE of `{self.name}`",
            f"{self.kind.plural} have no CREATE statement",
            "DESCRIBE EXTENDED shows what defines it",
        )

    def drop(self, *, cascade: bool = False) -> list[str]:
        """Delete it; gives the names of what was deleted, in that order.

        Artefacts that read it are deleted before it with ``cascade``, and are an error without.
        """
        before = drop_readers(self.name, self._environment, cascade=cascade, verb="drop()")
        self.delete()
        return [*before, self.name]

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()


def _check_until(until: Frontier | None) -> None:
    """Raise for a goal that is no frontier."""
    if until is not None and not isinstance(until, Frontier):
        raise InputError.bad_argument("until", until, 'a frontier, such as Frontier.parse("orders@42")')
