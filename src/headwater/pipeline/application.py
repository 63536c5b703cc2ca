"""Application: giving the lake the definitions of a project, without refreshing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.derived import kinds
from headwater.pipeline.execution import there
from headwater.pipeline.graph import Graph

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["apply_definitions"]


def apply_definitions(lake: Lake, graph: Graph, names: Sequence[str]) -> dict[str, str]:
    """Define nodes in their order; "created", "changed" or "unchanged" for each.

    Each definition is one commit. A process that ends on the way leaves some of them applied, and applying again does
    the rest.
    """
    environment = lake.environment()
    for name in graph.sources:
        location = graph.nodes[name].options.get("location")
        if location is not None and not lake.catalog.is_attached(name):
            lake.attach(name, location)
    have, done = dict(environment.artefacts()), {}
    for name in names:
        node, kind = graph.nodes[name], kinds.kind(graph.nodes[name].kind)
        if there(node, environment, have) is None:
            done[name] = "created"
        elif kind.difference(name, node.options, graph.outlines[name], environment) is not None:
            done[name] = "changed"
        else:
            done[name] = "unchanged"
            continue
        kind.define(name, node.options, environment)
    return done
