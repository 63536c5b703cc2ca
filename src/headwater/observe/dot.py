r"""A graph in the language of Graphviz, for those who have their own way of drawing.

Nodes are called ``n1``, ``n2`` and so on, so that no text of a user's is an identifier. Inside a quoted text of DOT, a
backslash begins an escape, a quote ends it, and an ampersand begins an entity of HTML: all three are escaped, and
lines are broken with ``\n``. Edges that are fed back are dashed, and do not move their target below their source.
"""

from __future__ import annotations

from headwater.observe.format import human_count
from headwater.observe.measure import cut, one_line
from headwater.observe.node_graph import GraphNode, Heat, NodeGraph
from headwater.observe.palette import LIGHT, Scale, kind_colour
from headwater.observe.svg import figures_of, tooltip_of

__all__ = ["draw_dot"]

_Tree = dict[str, "_Tree | list[str]"]


def draw_dot(graph: NodeGraph, *, heat: Heat = "seconds") -> str:
    """The graph as a DOT document."""
    scale = Scale(graph, heat)
    names = {node.id: f"n{i}" for i, node in enumerate(graph.nodes, 1)}
    out = [
        f"digraph {_quoted(graph.title)} {{",
        f"  graph [label={_quoted(graph.title)}, labelloc=t, labeljust=l, fontname=Helvetica, compound=true]",
        '  node [shape=box, style="rounded,filled", fontname=Helvetica, fontsize=11, penwidth=1.5]',
        "  edge [fontname=Helvetica, fontsize=9, color=gray50]",
    ]
    clusters: dict[tuple[str, ...], str] = {}
    _members(graph, (), names, scale, clusters, out)
    for edge in graph.edges():
        metrics = graph[edge.source].metrics
        options = [f"label={_quoted(human_count(metrics.rows_out))}"] if metrics else []
        options += ["style=dashed", "constraint=false"] if edge.feedback else []
        last = f" [{', '.join(options)}]" if options else ""
        out.append(f"  {names[edge.source]} -> {names[edge.target]}{last}")
    return "\n".join([*out, "}"]) + "\n"


def _members(
    graph: NodeGraph,
    path: tuple[str, ...],
    names: dict[str, str],
    scale: Scale,
    clusters: dict[tuple[str, ...], str],
    out: list[str],
) -> None:
    """The nodes of a group, and the groups in it, each a cluster."""
    indent = "  " * (len(path) + 1)
    inner = []
    for node in graph.nodes:
        if node.path == path:
            out.append(f"{indent}{names[node.id]} [{_options(node, scale)}]")
        elif node.path[: len(path)] == path and (deeper := node.path[: len(path) + 1]) not in inner:
            inner.append(deeper)
    for deeper in inner:
        clusters[deeper] = f"cluster_{len(clusters) + 1}"
        out.append(f"{indent}subgraph {clusters[deeper]} {{")
        out.append(f'{indent}  graph [label={_quoted(deeper[-1])}, style="rounded,filled", fillcolor="#f4f6f9"]')
        _members(graph, deeper, names, scale, clusters, out)
        out.append(f"{indent}}}")


def _options(node: GraphNode, scale: Scale) -> str:
    lines = [node.label, node.detail, figures_of(node.metrics) if node.metrics else ""]
    label = "\\n".join(_escaped(cut(text, 11, 300)) for text in map(one_line, lines) if text)
    tooltip = "\\n".join(map(_escaped, tooltip_of(node).split("\n")))
    fill, line = LIGHT[scale.step(node.metrics)], kind_colour(node.kind)
    return f'label="{label}", tooltip="{tooltip}", fillcolor="{fill}", color="{line}"'


def _quoted(text: str) -> str:
    return f'"{_escaped(cut(one_line(text), 11, 600))}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
