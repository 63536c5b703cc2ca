"""Plans of a project: what a refresh would do to each node, why, and what it is expected to take.

Nothing is changed by planning. A node whose upstream would change is planned as if that had been done, as far as that
can be known before: its mode is certain, its number of rows is not. Data tests are not evaluated by planning: a node is
blocked by what they said the last time, and where they would be evaluated again first, the reason says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from headwater.base import markup
from headwater.base.errors import HeadwaterError, ProjectError
from headwater.derived import kinds
from headwater.derived.artefact import Artefact
from headwater.derived.environment import Environment
from headwater.derived.lookup import Lookup
from headwater.derived.plan import RefreshPlan
from headwater.lake.snapshot import Snapshot
from headwater.pipeline.checks.standing import Standing, broken_tests, reason_of
from headwater.pipeline.execution import there
from headwater.pipeline.graph import Graph
from headwater.pipeline.node import Node
from headwater.pipeline.pins import Pins

__all__ = ["NodePlan", "PlanMode", "ProjectPlan", "plan_nodes"]

PlanMode = Literal["noop", "incremental", "full", "blocked"]
_LOCAL = "local"


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """What a refresh would do to a node.

    Parameters
    ----------
    mode : "noop", "incremental", "full" or "blocked"
    reason : str
        why, for people
    rows : int, optional
        how many rows it is expected to read; None where that is not known before
    rows_total : int, optional
        how many rows its sources have, which computing from scratch would read
    seconds : float, optional
        what it is expected to take, where that was measured before
    engine : str
        who would do the work
    change : str, optional
        "created" or "changed", where its definition would be
    """

    name: str
    kind: str
    mode: PlanMode
    reason: str
    rows: int | None = None
    rows_total: int | None = None
    seconds: float | None = None
    engine: str = _LOCAL
    change: str | None = None
    error: HeadwaterError | None = None
    broken: tuple[Standing, ...] = ()
    """The data tests that hold it back, by what they said when they were last evaluated."""

    @property
    def expected(self) -> str:
        """The rows that it is expected to read, in words."""
        if self.mode in ("noop", "blocked"):
            return ""
        if self.rows is None:
            return "?" if self.rows_total is None else f"? of {self.rows_total:,} rows"
        return f"{self.rows:,} rows" if self.rows_total is None else f"{self.rows:,} of {self.rows_total:,} rows"

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "mode": self.mode,
            "reason": self.reason,
            "rows": self.rows,
            "rows_total": self.rows_total,
            "seconds": self.seconds,
            "engine": self.engine,
            "change": self.change,
            "error": None if self.error is None else self.error.as_dict(),
            "broken_tests": [one.as_dict() for one in self.broken],
        }


@dataclass(frozen=True)
class ProjectPlan(Mapping[str, NodePlan]):
    """What a refresh of a project would do, node by node, in its order."""

    project: str
    nodes: Mapping[str, NodePlan]
    unmanaged: Mapping[str, str] = field(default_factory=dict)
    """What is derived in the lake and not declared in the project, each with its kind; it is left alone."""
    left_tests: tuple[str, ...] = ()
    """The views of data tests that are not declared any more, which a refresh drops."""

    def __getitem__(self, name: str) -> NodePlan:
        return self.nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def blocked(self) -> list[str]:
        """The nodes that cannot be refreshed."""
        return [name for name, one in self.nodes.items() if one.mode == "blocked"]

    def rows(self) -> list[tuple[str, ...]]:
        """The nodes as rows of a listing."""
        return [
            (
                one.name,
                one.kind,
                one.mode,
                one.expected,
                "" if one.seconds is None else f"{one.seconds:.3f}",
                one.engine if one.mode not in ("noop", "blocked") else "",
                one.reason,
            )
            for one in self.nodes.values()
        ]

    def summary(self) -> str:
        """One line."""
        counts = {
            mode: sum(one.mode == mode for one in self.nodes.values())
            for mode in ("full", "incremental", "noop", "blocked")
        }
        return ", ".join(f"{count} {mode}" for mode, count in counts.items() if count) or "no nodes"

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "project": self.project,
            "nodes": [one.as_dict() for one in self.nodes.values()],
            "unmanaged": dict(self.unmanaged),
            "left_tests": list(self.left_tests),
        }

    def __str__(self) -> str:
        lines = [self.summary()]
        lines += ["  " + "  ".join(filter(None, row)) for row in self.rows()]
        lines += [f"  the test is not declared any more, a refresh drops it: {view}" for view in self.left_tests]
        lines += [f"  not in the project, left alone: {name} ({kind})" for name, kind in self.unmanaged.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = ("name", "kind", "mode", "expected", "seconds", "engine", "why")
        note = "; ".join(f"not in the project, left alone: {n} ({k})" for n, k in self.unmanaged.items())
        return markup.listing(f"{self.project}: {self.summary()}", headings, self.rows(), note)


def plan_nodes(
    graph: Graph, names: Sequence[str], environment: Environment, *, full: bool, strict: bool
) -> dict[str, NodePlan]:
    """What would be done to some nodes, in their order."""
    return _Planning(graph, names, environment, full=full, strict=strict).run()


class _Planning:
    def __init__(
        self, graph: Graph, names: Sequence[str], environment: Environment, *, full: bool, strict: bool
    ) -> None:
        self.graph, self.names, self.environment = graph, names, environment
        self.full, self.strict = full, strict
        self.have = dict(environment.artefacts())
        self.pins = Pins(environment)
        self.plans: dict[str, NodePlan] = {}
        read = {source for name in names for source in graph.reads(name)}
        self.broken = broken_tests(graph.checks_of(read), Lookup(environment))

    def run(self) -> dict[str, NodePlan]:
        located = {n: self.graph.nodes[n].options.get("location") for n in self.graph.sources}
        self.pins.look(
            n for name in self.names for n in self.graph.reads(name) if not located.get(n) or n in self._attached()
        )
        for name in self.names:
            self.plans[name] = self._plan(self.graph.nodes[name])
        return self.plans

    def _attached(self) -> set[str]:
        return {n for n in self.graph.sources if self.environment.table(n).exists()}

    def _plan(self, node: Node) -> NodePlan:
        reads = self.graph.reads(node.name)
        lost = sorted(r for r in reads if r in self.plans and self.plans[r].mode == "blocked")
        broken = list(dict.fromkeys(one for read in reads for one in self.broken.get(read, ())))
        broken += [one for read in lost for one in self.plans[read].broken if one not in broken]
        if lost or broken:
            failed = [name for name in lost if not self.plans[name].broken]
            reasons = [f"{', '.join(failed)} cannot be refreshed"] if failed else []
            if broken:
                again = any(one.behind or self._changes(one.reads) for one in broken)
                reasons.append(f"{reason_of(broken)}{' (evaluated again first)' if again else ''}")
            return self._made(node, "blocked", "; ".join(reasons), broken=tuple(broken))
        changing = [r for r in reads if r in self.plans and self.plans[r].mode != "noop"]
        try:
            artefact = there(node, self.environment, self.have)
            change = self._change(node, artefact)
            if change is not None:
                return self._from_scratch(node, *change, built=artefact is not None and artefact.built)
            assert artefact is not None, "it is there and as it is declared"
            return self._refreshed(node, artefact, changing)
        except HeadwaterError as error:
            return self._made(node, "blocked", f"[{error.code}] {error.message}", error=error)

    def _changes(self, names: Sequence[str]) -> bool:
        return any(self.plans[name].mode in ("incremental", "full") for name in names if name in self.plans)

    def _change(self, node: Node, artefact: Artefact | None) -> tuple[str, str] | None:
        """Whether the definition would be made or changed, and why."""
        if artefact is None:
            return "created", "it is new"
        kind = kinds.kind(node.kind)
        why = kind.difference(node.name, node.options, self.graph.outlines[node.name], self.environment)
        return None if why is None else ("changed", why)

    def _from_scratch(self, node: Node, change: str, why: str, *, built: bool) -> NodePlan:
        total = self._total(node.name)
        if self.strict and built:
            refusal = ProjectError.full_refused(node.name, why, node.where)
            return self._made(node, "blocked", refusal.message, change=change, error=refusal)
        return self._made(node, "full", why, change=change, rows=total, rows_total=total)

    def _refreshed(self, node: Node, artefact: Artefact, changing: Sequence[str]) -> NodePlan:
        newest = self.pins.of(artefact.reads)
        for name in artefact.reads:
            if name in self.pins.failed:
                raise self.pins.failed[name]
        found = artefact.plan_alone(None, newest=newest, first=changing)
        if self.full and found.mode != "full":
            return self._made(
                node, "full", "it is asked for", rows=self._total(node.name), rows_total=self._total(node.name)
            )
        if self.strict and found.mode == "full" and artefact.built:
            refusal = ProjectError.full_refused(node.name, found.reason, node.where)
            return self._made(node, "blocked", refusal.message, error=refusal)
        total = found.rows or self._total(node.name)
        known = None if changing else sum(found.changes.values()) if found.mode == "incremental" else total
        seconds = _seconds(found)
        return self._made(
            node, found.mode, found.reason, rows=known, rows_total=total, seconds=seconds, engine=_engine(found)
        )

    def _total(self, name: str) -> int | None:
        """How many rows the sources of a node have, as far as the logs know."""
        found = [self._rows_of(one, base) for one, base in self.pins.of(self.graph.reads(name)).items()]
        if len(found) < len(self.graph.reads(name)) or None in found:
            return None
        return sum(one for one in found if one is not None)

    def _rows_of(self, name: str, base: Snapshot) -> int | None:
        return None if name in self.plans and self.plans[name].change is not None else base.num_rows

    def _made(self, node: Node, mode: PlanMode, reason: str, **more: Any) -> NodePlan:
        return NodePlan(name=node.name, kind=node.kind, mode=mode, reason=reason, **more)


def _seconds(found: RefreshPlan) -> float | None:
    """What a plan expects to take, where its kind measures that."""
    given = {"incremental": "incremental_seconds", "full": "full_seconds"}.get(found.mode)
    seconds = getattr(found, given, None) if given is not None else 0.0
    return None if seconds is None else round(float(seconds), 6)


def _engine(found: RefreshPlan) -> str:
    """Who would do the work, where the kind has a choice."""
    return str(getattr(found, "engine", _LOCAL))
