"""A project as a graph that can be drawn: nodes with their rows, how fresh each is, and at which versions."""

from __future__ import annotations

from headwater.observe.graph import Graph as Picture
from headwater.observe.node_graph import GraphNode, NodeMetrics
from headwater.pipeline.graph import Graph
from headwater.pipeline.node import SOURCE
from headwater.pipeline.project_status import NodeStatus, ProjectStatus

__all__ = ["drawn"]


def drawn(title: str, graph: Graph, status: ProjectStatus) -> Picture:
    """The graph of a project."""
    nodes = []
    for name, node in graph.nodes.items():
        one = status.nodes.get(name)
        rows = None if one is None else one.rows
        # What its last refresh took stands in the ledger: a picture shows what there is, and how fresh it is.
        came = 0 if one is None or one.last is None else one.last.rows_in
        metrics = None if rows is None else NodeMetrics(came, rows, 0.0, state_rows=0, state_bytes=0, steps=0)
        nodes.append(
            GraphNode(
                id=name,
                kind=node.kind,
                label=name,
                detail=_freshness(one),
                inputs=graph.reads(name),
                sql=node.sql or "",
                group=None,
                metrics=metrics,
            )
        )
    return Picture(title, nodes)


def _freshness(one: NodeStatus | None) -> str:
    """How fresh a node is, and at which versions."""
    if one is None:
        return ""
    if one.kind == SOURCE:
        return f"version {one.version}{'' if not one.stale else f', {one.health}'}"
    at = ", ".join(f"{name}@{version}" for name, version in one.frontier.items())
    return f"fresh at {at}" if not one.stale else f"{one.health}: {one.lag_text}"
