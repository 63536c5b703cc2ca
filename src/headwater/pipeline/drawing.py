"""A project as a graph that can be drawn: nodes with their columns' counts, their freshness and their rows."""

from __future__ import annotations

from headwater.observe.graph import Graph as Picture
from headwater.observe.node_graph import GraphNode, NodeMetrics
from headwater.pipeline.graph import Graph
from headwater.pipeline.project_status import ProjectStatus

__all__ = ["drawn"]


def drawn(title: str, graph: Graph, status: ProjectStatus) -> Picture:
    """The graph of a project."""
    nodes = []
    for name, node in graph.nodes.items():
        one = status.nodes.get(name)
        detail = "" if one is None or node.is_source else f"{one.health}, {one.lag_text}" if one.stale else "fresh"
        rows = None if one is None else one.rows
        last = None if one is None else one.last
        metrics = None
        if rows is not None:
            metrics = NodeMetrics(
                rows_in=0 if last is None else last.rows_in,
                rows_out=rows,
                seconds=0.0 if last is None else last.seconds,
                state_rows=0,
                state_bytes=0,
                steps=1,
            )
        nodes.append(
            GraphNode(
                id=name,
                kind=node.kind,
                label=name,
                detail=detail,
                inputs=graph.reads(name),
                sql=node.sql or "",
                group=None,
                metrics=metrics,
            )
        )
    return Picture(title, nodes)
