"""What would run: stages, what each does, why it begins, as text and as a graph."""

from __future__ import annotations

from headwater.observe.graph import Graph, GraphNode
from headwater.timeseries.running.pipes import Stage

__all__ = ["graph_of", "text_of"]


def text_of(stage: Stage) -> str:
    """The stages, the last one first; what they get rows from is indented below them.

    >>> scan = Stage(("scan trades@3: 8 files", "filter price > 0"), "8 tasks read files")
    >>> print(text_of(Stage(("shift price by 1",), "exchange by symbol into 4", (scan,), "there are about 90 MB")))
    exchange by symbol into 4, since there are about 90 MB
      shift price by 1
      8 tasks read files
        scan trades@3: 8 files
        filter price > 0
    """
    return "\n".join(_lines(stage, 0))


def _lines(stage: Stage, depth: int) -> list[str]:
    since = f", since {stage.why}" if stage.why else ""
    found = [f"{'  ' * depth}{stage.begins}{since}"]
    found += [f"{'  ' * (depth + 1)}{line}" for line in stage.lines]
    for below in stage.inputs:
        found += _lines(below, depth + 1)
    return found


def graph_of(stage: Stage, title: str) -> Graph:
    """The same as a graph: a box for each stage, a node for each operator.

    >>> scan = Stage(("scan trades@3: 8 files",), "8 tasks read files")
    >>> graph_of(Stage(("shift price by 1",), "exchange by symbol into 4", (scan,)), "trades").svg()[:4]
    '<svg'
    """
    nodes: list[GraphNode] = []
    _draw(stage, nodes, {})
    return Graph(title, nodes)


def _draw(stage: Stage, nodes: list[GraphNode], drawn: dict[int, str]) -> str:
    """Add a stage's nodes, and give the id of its last."""
    known = drawn.get(id(stage))
    if known is not None:
        return known
    inputs = tuple(_draw(below, nodes, drawn) for below in stage.inputs)
    begins = stage.begins.partition(" ")
    exchanged = begins[0].rstrip(":") == "exchange"
    # An exchange is a node of its own: what is said of it is longer than the caption of a box may be.
    box = f"{len(drawn) + 1}: {begins[0].rstrip(':') if exchanged else stage.begins.replace('/', ' per ')}"
    for k, line in enumerate([stage.begins, *stage.lines] if exchanged else stage.lines or (stage.begins,)):
        word, _, rest = line.partition(" ")
        name = f"n{len(nodes)}"
        meets = len(stage.inputs) > 1 and k == exchanged
        kind = {"scan": "source", "filter": "filter", "exchange": "exchange"}.get(
            word.rstrip(":"), "join" if meets else "map"
        )
        nodes.append(GraphNode(name, kind, word.rstrip(":"), rest, inputs, group=box))
        inputs = (name,)
    drawn[id(stage)] = inputs[0]
    return inputs[0]
