"""Why a node is as it is: what it waits for, what its next refresh would be and why, and what the last ones were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.base import markup
from headwater.derived.lookup import Lookup
from headwater.pipeline.graph import Graph
from headwater.pipeline.ledger import Ledger, summaries
from headwater.pipeline.node import Node
from headwater.pipeline.planning import NodePlan, plan_nodes
from headwater.pipeline.project_status import NodeStatus, status_of

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["Why", "explain"]

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Why:
    """The reasons of a node."""

    node: Node
    status: NodeStatus
    plan: NodePlan | None
    upstream: list[NodePlan] = field(default_factory=list)
    """What would be refreshed before it, in that order."""
    reads: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    last: list[dict[str, Any]] = field(default_factory=list)
    """Its last rows of the ledger, newest first."""

    def facts(self) -> list[tuple[str, str]]:
        """Names and values."""
        found = [
            ("kind", self.node.kind),
            ("declared in", self.node.where),
            ("health", self.status.health),
            ("lag", self.status.lag_text),
            ("frontier", str(self.status.frontier)),
            ("reads", ", ".join(self.reads)),
            ("read by", ", ".join(self.readers)),
        ]
        if self.plan is not None:
            found.append(("next refresh", f"{self.plan.mode}: {self.plan.reason}"))
        found += [("first", f"{one.name}: {one.mode}: {one.reason}") for one in self.upstream]
        found += [
            ("before", f"{row['at']:%Y-%m-%d %H:%M:%S} {row['mode']}: {row['error'] or row['reason']}")
            for row in self.last
        ]
        return [(name, text) for name, text in found if text]

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {
            "name": self.node.name,
            "kind": self.node.kind,
            "where": self.node.where,
            "status": self.status.as_dict(),
            "plan": None if self.plan is None else self.plan.as_dict(),
            "upstream": [one.as_dict() for one in self.upstream],
            "reads": list(self.reads),
            "readers": list(self.readers),
            "last": summaries(self.last),
        }

    def __str__(self) -> str:
        return "\n".join([self.node.name, *(f"  {name}: {text}" for name, text in self.facts())])

    def _repr_html_(self) -> str:
        return markup.facts(self.node.name, self.facts())


def explain(lake: Lake, project: str, graph: Graph, node: Node) -> Why:
    """The reasons of a node of a project."""
    environment = lake.environment()
    upstream = graph.upstream([node.name]) if not node.is_source else set()
    names = [name for name in graph.kept if name in upstream or name == node.name]
    plans = plan_nodes(graph, names, environment, full=False, strict=False)
    own = plans.pop(node.name, None)
    return Why(
        node=node,
        status=status_of(graph, [node.name], Lookup(environment))[node.name],
        plan=own,
        upstream=[one for one in plans.values() if one.mode != "noop"],
        reads=graph.reads(node.name),
        readers=tuple(graph.readers(node.name)),
        last=Ledger(lake, project).read(node.name, _SHOWN),
    )
