"""Graphs of operators: what a circuit, a stream or a pipeline is made of, and what each part has done.

The problem: people ask what runs, in which order, over how many rows, and where the time and the state go, of things
that are built quite differently. The idea: each of them describes itself as a `Graph`, plain data without behaviour,
and one set of renderers draws it: `Graph.text` for a terminal, `Graph.svg` for a page or a notebook, `Graph.dot` for
Graphviz and `Graph.to_dict` for ``--json``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from headwater.observe.dot import draw_dot
from headwater.observe.node_graph import Heat, NodeGraph
from headwater.observe.svg import draw_svg
from headwater.observe.text import draw_text

__all__ = ["Graph"]


class Graph(NodeGraph):
    """
    A directed graph of operators, and the ways to look at it.

    Examples
    --------
    >>> from headwater.observe.node_graph import GraphNode
    >>> graph = Graph("spend", [
    ...     GraphNode("o", "source", "orders"),
    ...     GraphNode("f", "filter", "filter", "amount > 0", ("o",)),
    ...     GraphNode("s", "sink", "spend", inputs=("f",)),
    ... ])
    >>> print(graph.text())
    spend: 3 nodes
    1  spend
    2  └─ filter  amount > 0
    3     └─ orders
    """

    __slots__ = ()

    def text(self, *, width: int | None = 120) -> str:
        """
        The graph as lines for a terminal: from the outputs down to the sources, each node once.

        Parameters
        ----------
        width
            The cells of a line; without it nothing is cut.
        """
        return draw_text(self, width=width)

    def dot(self, *, heat: Heat = "seconds") -> str:
        """
        The graph in the language of Graphviz.

        Parameters
        ----------
        heat
            Which figure the nodes are filled by.
        """
        return draw_dot(self, heat=heat)

    def svg(self, *, heat: Heat = "seconds") -> str:
        """
        The graph as a picture that needs nothing else: one SVG document, for light and dark backgrounds.

        Parameters
        ----------
        heat
            Which figure the nodes are coloured by: their time, the rows they gave, the state they hold, or the bytes
            that they read of tables or sent through Spark's shuffle.
        """
        return draw_svg(self, heat=heat)

    def to_dict(self) -> dict[str, Any]:
        """The graph as plain data, for JSON."""
        nodes = [asdict(node) for node in self.nodes]
        for node in nodes:
            for name in ("bytes_out", "tasks", "bytes_in", "shuffled_bytes"):
                if node["metrics"] is not None and not node["metrics"][name]:
                    del node["metrics"][name]
        return {"title": self.title, "nodes": nodes}

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'
