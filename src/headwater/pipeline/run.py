"""Runs: the report of one refresh of a project, node by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from headwater.base import markup
from headwater.base.errors import HeadwaterError
from headwater.base.frontier import Frontier
from headwater.derived.reports import Refresh
from headwater.pipeline.checks.evaluation import CheckResult

__all__ = ["NodeRun", "NodeState", "Run"]

NodeState = Literal["waiting", "running", "retrying", "done", "noop", "failed", "blocked", "stopped"]
"""What became of a node so far; "blocked": something that it reads could not be refreshed, or fails a data test."""


@dataclass
class NodeRun:
    """One node of a run; it changes while the run goes on."""

    name: str
    kind: str
    state: NodeState = "waiting"
    change: str | None = None
    """"created" or "changed", where its definition was."""
    refresh: Refresh | None = None
    error: HeadwaterError | None = None
    blocked_by: tuple[str, ...] = ()
    broken: tuple[CheckResult, ...] = ()
    """The data tests that block it, of what it reads directly or through others."""
    tries: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    rows_total: int | None = None

    @property
    def touched(self) -> str:
        """How much of it was touched, in words."""
        if self.refresh is None or self.state not in ("done", "noop"):
            return ""
        changes, total = self.refresh.rows_out, self.rows_total
        if total is not None and changes > total:  # a row that is replaced goes and comes
            return f"{changes:,} changes in {total:,} rows"
        return f"{changes:,} rows touched" if total is None else f"{changes:,} of {total:,} rows touched"

    @property
    def reason(self) -> str:
        """Why it was done so, or not done."""
        if self.error is not None:
            return f"[{self.error.code}] {self.error.message}"
        if self.state == "blocked":
            tested = {one.check.node for one in self.broken}
            failed = [name for name in self.blocked_by if name not in tested]
            reasons = [f"{', '.join(failed)} could not be refreshed"] if failed else []
            return "; ".join([*reasons, *(one.reason for one in self.broken)])
        return "" if self.refresh is None else self.refresh.reason

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        found: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "change": self.change,
            "tries": self.tries,
            "seconds": round(self.seconds, 6),
            "cpu_seconds": round(self.cpu_seconds, 6),
            "rows_total": self.rows_total,
            "blocked_by": list(self.blocked_by),
            "broken_tests": [one.check.name for one in self.broken],
            "error": None if self.error is None else self.error.as_dict(),
        }
        if self.refresh is not None:
            found["refresh"] = self.refresh.as_dict()
        return found


@dataclass
class Run(Mapping[str, NodeRun]):
    """The report of one refresh of a project: its nodes by name, in the order in which they could be refreshed."""

    id: str
    project: str
    began: datetime
    nodes: dict[str, NodeRun] = field(default_factory=dict)
    checks: dict[str, CheckResult] = field(default_factory=dict)
    """What came of the data tests, by the name of each."""
    dropped_tests: list[str] = field(default_factory=list)
    """The views of data tests that were dropped, because the project does not declare them any more."""
    frontier: Frontier = field(default_factory=Frontier)
    """The versions that the tables were pinned at."""
    seconds: float = 0.0
    stopped: bool = False
    """Whether it was stopped before all nodes were tried."""

    def __getitem__(self, name: str) -> NodeRun:
        return self.nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def of_state(self, *states: NodeState) -> list[str]:
        """The names of the nodes in some states."""
        return [name for name, one in self.nodes.items() if one.state in states]

    @property
    def failed(self) -> dict[str, HeadwaterError]:
        """The nodes that could not be refreshed, each with its error."""
        return {name: one.error for name, one in self.nodes.items() if one.state == "failed" and one.error is not None}

    @property
    def ok(self) -> bool:
        """Whether every node is where it should be, and no data test of severity error fails."""
        held = any(one.blocks for one in self.checks.values())
        return not (held or self.of_state("failed", "blocked", "stopped", "waiting"))

    @property
    def broken(self) -> list[CheckResult]:
        """The data tests that rows break, also those of severity warn."""
        return [one for one in self.checks.values() if not one.passed]

    @property
    def changed(self) -> list[str]:
        """The nodes that published something."""
        return self.of_state("done")

    def rows(self) -> list[tuple[str, ...]]:
        """The nodes as rows of a listing."""
        return [
            (
                one.name,
                one.kind,
                one.state if one.refresh is None else one.refresh.mode,
                one.touched,
                f"{one.seconds:.3f}" if one.seconds else "",
                "" if one.refresh is None else str(one.refresh.after),
                one.reason,
            )
            for one in self.nodes.values()
        ]

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "run": self.id,
            "project": self.project,
            "began": self.began.isoformat(timespec="milliseconds"),
            "seconds": round(self.seconds, 6),
            "ok": self.ok,
            "stopped": self.stopped,
            "frontier": dict(self.frontier),
            "nodes": [one.as_dict() for one in self.nodes.values()],
            "tests": [one.as_dict() for one in self.checks.values()],
            "dropped_tests": list(self.dropped_tests),
        }

    def summary(self) -> str:
        """One line."""
        counts: Sequence[tuple[str, int]] = [
            ("refreshed", len(self.of_state("done"))),
            ("up to date", len(self.of_state("noop"))),
            ("failed", len(self.of_state("failed"))),
            ("blocked", len(self.of_state("blocked"))),
            ("not tried", len(self.of_state("stopped", "waiting"))),
        ]
        said = [f"{count} {what}" for what, count in counts if count]
        if self.broken:
            said.append(f"{len(self.broken)} of {len(self.checks)} tests failed")
        if self.dropped_tests:
            said.append(f"{len(self.dropped_tests)} former tests dropped")
        return f"{', '.join(said) or 'nothing to refresh'} in {self.seconds:.1f} s"

    def __str__(self) -> str:
        lines = [self.summary()]
        for name, kind, mode, touched, _, after, why in self.rows():
            lines.append("  " + "  ".join(filter(None, [name, kind, mode, touched, after, why])))
        lines += [f"  {one}" for one in self.broken]
        lines += [f"  dropped, the test is not declared any more: {view}" for view in self.dropped_tests]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = ("name", "kind", "mode", "touched", "seconds", "frontier", "why")
        return markup.listing(f"{self.project}: {self.summary()}", headings, self.rows())
