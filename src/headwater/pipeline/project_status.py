"""Status of a project: how fresh each node is, in versions and in seconds, held against what was promised.

The lag in seconds of a node is the age of the oldest change of a table that it does not reflect, whether it reads that
table itself or through others. A node with a freshness target is stale when its lag is longer than the target; one
without is stale as soon as anything is missing. A table with a target is stale when its newest commit is older. A node
that a failing data test holds back is blocked, whatever its target: no refresh brings it forward before that passes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from headwater.base import markup
from headwater.base.errors import HeadwaterError, NotFoundError
from headwater.base.frontier import Frontier
from headwater.base.storage import Storage
from headwater.derived.handle import Handle
from headwater.derived.lookup import Lookup
from headwater.derived.record import LastRefresh
from headwater.lake import log
from headwater.pipeline.checks.standing import Standing, broken_tests, reason_of
from headwater.pipeline.graph import Graph
from headwater.pipeline.node import Node

__all__ = ["NodeStatus", "ProjectStatus", "status_of"]

NodeHealth = Literal["fresh", "stale", "blocked", "never built", "not applied", "failed"]
_MOST_COMMITS = 1_000


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """How fresh a node is.

    Parameters
    ----------
    health : "fresh", "stale", "blocked", "never built", "not applied" or "failed"
        "blocked": a data test of what it reads, directly or through others, failed when it was last evaluated
    frontier : Frontier
        the version of each source that it reflects
    lag : mapping of str to int or None
        by how many versions it is behind each source; None for a source that is not there
    lag_seconds : float, optional
        the age of the oldest change that it does not reflect; None where that is not known
    target_seconds : float, optional
        how long that may be
    """

    name: str
    kind: str
    health: NodeHealth
    frontier: Frontier = field(default_factory=Frontier)
    lag: Mapping[str, int | None] = field(default_factory=dict)
    behind: tuple[str, ...] = ()
    lag_seconds: float | None = 0.0
    target_seconds: float | None = None
    rows: int | None = None
    version: int | None = None
    last: LastRefresh | None = None
    error: HeadwaterError | None = None
    broken: tuple[Standing, ...] = ()
    """The data tests that hold it back."""

    @property
    def stale(self) -> bool:
        """Whether it is not as fresh as it should be."""
        return self.health != "fresh"

    @property
    def lag_text(self) -> str:
        """How far it is behind, in words."""
        if self.error is not None:
            return f"[{self.error.code}] {self.error.message}"
        held = [reason_of(self.broken)] if self.broken else []
        if self.health in ("never built", "not applied"):
            return self.health
        said = [
            f"{name} is missing" if count is None else f"{count:,} version{'' if count == 1 else 's'} behind {name}"
            for name, count in self.lag.items()
        ]
        said += [f"{name} is behind" for name in self.behind]
        if said and self.lag_seconds is not None:
            said[-1] += f" ({_words(self.lag_seconds)})"
        return "; ".join([*held, *said]) or "up to date"

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "health": self.health,
            "stale": self.stale,
            "frontier": dict(self.frontier),
            "lag": dict(self.lag),
            "behind": list(self.behind),
            "lag_seconds": self.lag_seconds,
            "target_seconds": self.target_seconds,
            "rows": self.rows,
            "version": self.version,
            "last_refresh": None if self.last is None else self.last.as_dict(),
            "error": None if self.error is None else self.error.as_dict(),
            "broken_tests": [one.as_dict() for one in self.broken],
        }


@dataclass(frozen=True)
class ProjectStatus(Mapping[str, NodeStatus]):
    """How fresh the nodes of a project are."""

    project: str
    nodes: Mapping[str, NodeStatus]
    unmanaged: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NodeStatus:
        return self.nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def stale(self) -> list[str]:
        """The nodes that are not as fresh as they should be."""
        return [name for name, one in self.nodes.items() if one.stale]

    @property
    def ok(self) -> bool:
        """Whether everything is as fresh as it should be."""
        return not self.stale

    def summary(self) -> str:
        """One line."""
        return f"{len(self.nodes) - len(self.stale)} of {len(self.nodes)} nodes are fresh"

    def rows(self) -> list[tuple[str, ...]]:
        """The nodes as rows of a listing."""
        return [
            (
                one.name,
                one.kind,
                one.health,
                str(one.frontier),
                one.lag_text,
                "" if one.target_seconds is None else _words(one.target_seconds),
                "" if one.rows is None else f"{one.rows:,}",
                "" if one.last is None else f"{one.last.time:%Y-%m-%d %H:%M:%S}, {one.last.mode}",
            )
            for one in self.nodes.values()
        ]

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "project": self.project,
            "ok": self.ok,
            "nodes": [one.as_dict() for one in self.nodes.values()],
            "unmanaged": dict(self.unmanaged),
        }

    def __str__(self) -> str:
        return "\n".join([self.summary(), *("  " + "  ".join(filter(None, row)) for row in self.rows())])

    def _repr_html_(self) -> str:
        headings = ("name", "kind", "health", "frontier", "lag", "target", "rows", "last refresh")
        return markup.listing(f"{self.project}: {self.summary()}", headings, self.rows())


def status_of(graph: Graph, names: Sequence[str], lookup: Lookup, *, now: float | None = None) -> dict[str, NodeStatus]:
    """How fresh some nodes are; ``now`` is in seconds since 1970."""
    found = _Statuses(graph, lookup, time.time() if now is None else now)
    for name in names:
        found.status(name)
    return {name: found.known[name] for name in names}


class _Statuses:
    def __init__(self, graph: Graph, lookup: Lookup, now: float) -> None:
        self.graph, self.lookup, self.now = graph, lookup, now
        self.known: dict[str, NodeStatus] = {}
        self.broken = broken_tests(graph.checks, lookup)
        self.unbuilt: set[str] = set()

    def status(self, name: str) -> NodeStatus:
        """The status of a node; those that it reads come first in the graph, but need not have been asked for."""
        if name not in self.known:
            node = self.graph.nodes[name]
            try:
                self.known[name] = self._source(node) if node.is_source else self._kept(node)
            except HeadwaterError as error:
                self.known[name] = NodeStatus(name=name, kind=node.kind, health="failed", error=error, lag_seconds=None)
        return self.known[name]

    def _source(self, node: Node) -> NodeStatus:
        base = self.lookup.snapshot(node.name)
        if base is None:
            return NodeStatus(name=node.name, kind=node.kind, health="not applied", lag_seconds=None)
        age = max(0.0, self.now - base.timestamp_ms / 1000)
        target = _seconds(node.freshness)
        return NodeStatus(
            name=node.name,
            kind=node.kind,
            health="stale" if target is not None and age > target else "fresh",
            lag_seconds=age,
            target_seconds=target,
            rows=base.num_rows,
            version=base.version,
        )

    def _kept(self, node: Node) -> NodeStatus:
        target = _seconds(node.freshness)
        broken = self._held_by(node)
        artefact = self.lookup.artefact(node.name)
        if artefact is None:
            self.unbuilt.add(node.name)
            return NodeStatus(
                name=node.name,
                kind=node.kind,
                health="blocked" if broken else "not applied",
                target_seconds=target,
                lag_seconds=None,
                broken=broken,
            )
        assert isinstance(artefact, Handle), "artefacts of all kinds are"
        own = artefact.status(self.lookup)
        ages = [self._age(name, own.frontier.get(name, -1)) for name, lag in own.lag.items() if lag is not None]
        behind = []
        for name in self.graph.reads(node.name):
            if not self.graph.nodes[name].is_source:
                upstream = self.status(name)
                if upstream.lag or upstream.behind or name in self.unbuilt:
                    behind.append(name)
                    ages.append(upstream.lag_seconds)
        missing = bool(own.lag or behind)
        seconds = None if None in ages else max((a for a in ages if a is not None), default=0.0)
        late = missing if target is None else missing and (seconds is None or seconds > target)
        lost = None in own.lag.values()
        if not own.built:
            self.unbuilt.add(node.name)
        return NodeStatus(
            name=node.name,
            kind=node.kind,
            health=_health(built=own.built, late=late or lost, blocked=bool(broken)),
            frontier=own.frontier,
            lag=own.lag,
            behind=tuple(behind),
            lag_seconds=seconds if own.built else None,
            target_seconds=target,
            rows=own.rows,
            version=own.version,
            last=own.last,
            broken=broken,
        )

    def _held_by(self, node: Node) -> tuple[Standing, ...]:
        """The tests that hold a node back: of what it reads, directly or through others."""
        found: dict[Standing, None] = {}
        for name in self.graph.reads(node.name):
            found |= dict.fromkeys(self.broken.get(name, ()))
            if not self.graph.nodes[name].is_source:
                found |= dict.fromkeys(self.status(name).broken)
        return tuple(found)

    def _age(self, name: str, have: int) -> float | None:
        """The age of the oldest commit after a version that changed rows."""
        base = self.lookup.snapshot(name)
        if base is None or base.version <= have:
            return None
        made = _first_change(base.storage, have + 1, base.version)
        return None if made is None else max(0.0, self.now - made / 1000)


def _health(*, built: bool, late: bool, blocked: bool) -> NodeHealth:
    if blocked:
        return "blocked"
    return "never built" if not built else "stale" if late else "fresh"


def _first_change(storage: Storage, first: int, last: int) -> int | None:
    """When the first of some commits was made that changed rows, in ms; None where the log has it no more."""
    for version in range(first, min(last, first + _MOST_COMMITS) + 1):
        try:
            commit = log.read_commit(storage, version)
        except NotFoundError:
            return None
        if commit.changes_data:
            return commit.timestamp_ms
    return None


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _words(seconds: float) -> str:
    """
    >>> _words(0.25), _words(90), _words(7200), _words(200000)
    ('0.2 s', '90 s', '2.0 h', '2.3 days')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
