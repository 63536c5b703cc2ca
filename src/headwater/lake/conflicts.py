"""Conflicts: may this proposal still be committed after that commit won?

Versions are decided one at a time. When another writer took the version we wanted, our proposal is still right
if nothing it relied on has changed. The rules, in order:

1. the winner changed the protocol, schema or properties: it is not right any more;
2. the winner removed a file (or changed the deletion vector of a file) that we remove, or whose rows we relied on:
   not right;
3. the winner added rows that we would have looked at, had they been there: not right;
4. otherwise: right, under the next number.

A proposal that is not right is made again from the new snapshot, which is the same as running it later, so the
history stays serial in the order of the versions. The one relaxation is Delta's own default, WriteSerializable:
an operation that lost three times to blind appends may let rule 3 go for them, as if it had run just before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.lake.actions import Action, AddFile, Commit, Metadata, Protocol, RemoveFile

__all__ = ["Proposal", "reason"]

MayMatch = Callable[[Sequence[AddFile]], bool]


@dataclass(slots=True)
class Proposal:
    """What an operation wants to commit, and what it relied on."""

    operation: str
    parameters: dict[str, Any] = field(default_factory=dict)
    adds: list[AddFile] = field(default_factory=list)
    removes: list[RemoveFile] = field(default_factory=list)
    cdc: list[Action] = field(default_factory=list)
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    txn: tuple[str, int] | None = None
    domains: list[Action] = field(default_factory=list)
    metrics: dict[str, int | float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    # None: it looked at no rows. Else tells whether rows of new files would have been looked at.
    reads: MayMatch | None = None
    yields_to_appends: bool = True
    # Files whose rows it found, and would have acted otherwise without.
    relies_on: frozenset[str] = frozenset()
    # Paths among ``adds`` that are not this attempt's own: written for all attempts, or there since long.
    keeps: frozenset[str] = frozenset()
    # A put of it may have succeeded, or may yet: its files must stay.
    sent: bool = False
    # Paths of files that were written without flushing: the commit comes after they are on the disk.
    unflushed: Sequence[str] = ()
    # Called as the last thing before a put: it waits for what else the commit names, and raises if that failed.
    ready: Callable[[], object] | None = None

    @property
    def is_blind_append(self) -> bool:
        return self.reads is None and not self.removes and self.metadata is None

    @property
    def is_empty(self) -> bool:
        return not (self.adds or self.removes or self.metadata or self.protocol or self.txn or self.domains)


def reason(proposal: Proposal, winner: Commit, *, relaxed: bool) -> str | None:
    """Why ``proposal`` cannot follow ``winner``, or None if it can."""
    if winner.protocol is not None:
        return "the table's protocol was changed"
    if winner.metadata is not None:
        return "the table's schema or properties were changed"
    ours = {f.path for f in proposal.removes}
    if any(f.path in ours for f in winner.removes):
        return "a file that this operation changes was changed"
    if any(f.data_change and f.path in proposal.relies_on for f in winner.removes):
        return "rows that this operation looked at were changed"
    if proposal.reads is not None:
        added = [f for f in winner.adds if f.data_change]
        excused = relaxed and proposal.yields_to_appends and winner.is_blind_append
        if added and not excused and proposal.reads(added):
            return "rows were added that this operation would have touched"
    return None
