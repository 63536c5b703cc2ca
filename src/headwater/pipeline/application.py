"""Application: giving the lake the definitions of a project, without refreshing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.derived import kinds
from headwater.pipeline.checks.evaluation import applied
from headwater.pipeline.execution import attach_sources, there
from headwater.pipeline.graph import Graph

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["apply_definitions"]


def apply_definitions(lake: Lake, project: str, graph: Graph, names: Sequence[str]) -> dict[str, str]:
    """Define nodes in their order; "created", "changed" or "unchanged" for each.

    Each definition is one commit. A process that ends on the way leaves some of them applied, and applying again does
    the rest. The data tests of the nodes, and of sources, become views; a test that reads a node that was never applied
    waits until that is there.
    """
    environment = lake.environment()
    attach_sources(lake, graph)
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
    for check in graph.checks_of([*names, *graph.sources]).values():
        if set(check.reads) <= {*graph.sources, *names, *have}:
            applied(lake, check.check, check.outline, project=project)
    return done
