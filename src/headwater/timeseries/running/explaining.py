"""What would run, or has run: stages, what each does, why it begins, and what its tasks did, as text and as a graph."""

from __future__ import annotations

from itertools import zip_longest

from headwater.observe.format import human_seconds
from headwater.observe.graph import Graph
from headwater.observe.node_graph import GraphNode, NodeMetrics
from headwater.spark.figures import Figures
from headwater.timeseries.running.pipes import Stage
from headwater.timeseries.running.reasons import amount

__all__ = ["graph_of", "text_of"]


def text_of(stage: Stage, figures: Figures | None = None) -> str:
    """The stages, the last one first; what they get rows from is indented below them.

    After a run each operator has its figures.

    >>> scan = Stage(("scan trades@3: 8 files", "filter price > 0"), "8 tasks read files")
    >>> print(text_of(Stage(("shift price by 1",), "exchange by symbol into 4", (scan,), "there are about 90 MB")))
    exchange by symbol into 4, since there are about 90 MB
      shift price by 1
      8 tasks read files
        scan trades@3: 8 files
        filter price > 0
    """
    return "\n".join(_lines(stage, 0, figures))


def _lines(stage: Stage, depth: int, figures: Figures | None) -> list[str]:
    since = f", since {stage.why}" if stage.why else ""
    found = [f"{'  ' * depth}{stage.begins}{since}{_done(figures, stage.arrival)}"]
    for line, mark in zip_longest(stage.lines, stage.marks):
        found.append(f"{'  ' * (depth + 1)}{line}{_done(figures, mark)}")
    for below in stage.inputs:
        found += _lines(below, depth + 1, figures)
    return found


def _done(figures: Figures | None, mark: int | None) -> str:
    figure = None if figures is None or mark is None else figures.found.get(mark)
    if figure is None:
        return ""
    rows = f"{figure.rows:,} row{'' if figure.rows == 1 else 's'}"
    tasks = f"{figure.tasks:,} task{'' if figure.tasks == 1 else 's'}"
    spent = f"{human_seconds(figure.seconds)} " if figure.seconds else ""
    return f"  [{rows}, {amount(figure.bytes)}, {spent}in {tasks}]"


def graph_of(stage: Stage, title: str, figures: Figures | None = None) -> Graph:
    """The same as a graph: a box for each stage, a node for each operator, with its figures after a run.

    >>> scan = Stage(("scan trades@3: 8 files",), "8 tasks read files")
    >>> graph_of(Stage(("shift price by 1",), "exchange by symbol into 4", (scan,)), "trades").svg()[:4]
    '<svg'
    """
    nodes: list[GraphNode] = []
    _draw(stage, nodes, {}, figures)
    return Graph(title, nodes)


def _metrics(
    figures: Figures | None, mark: int | None, inputs: tuple[str, ...], nodes: list[GraphNode]
) -> NodeMetrics | None:
    figure = None if figures is None or mark is None else figures.found.get(mark)
    if figure is None:
        return None
    given = [node.metrics for node in nodes if node.id in inputs]
    rows_in = sum(m.rows_out for m in given if m is not None)
    return NodeMetrics(rows_in, figure.rows, figure.seconds, 0, 0, 1, figure.bytes, figure.tasks)


def _draw(stage: Stage, nodes: list[GraphNode], drawn: dict[int, str], figures: Figures | None) -> str:
    """Add a stage's nodes, and give the id of its last."""
    known = drawn.get(id(stage))
    if known is not None:
        return known
    inputs = tuple(_draw(below, nodes, drawn, figures) for below in stage.inputs)
    begins = stage.begins.partition(" ")
    exchanged = begins[0].rstrip(":") == "exchange"
    # An exchange is a node of its own: what is said of it is longer than the caption of a box may be.
    box = f"{len(drawn) + 1}: {begins[0].rstrip(':') if exchanged else stage.begins.replace('/', ' per ')}"
    marks: tuple[int | None, ...] = stage.marks if stage.lines else (stage.arrival,)
    marks = (stage.arrival, *marks) if exchanged and stage.lines else marks
    lines = [stage.begins, *stage.lines] if exchanged else stage.lines or (stage.begins,)
    for k, (line, mark) in enumerate(zip_longest(lines, marks[: len(lines)])):
        word, _, rest = line.partition(" ")
        name = f"n{len(nodes)}"
        meets = len(stage.inputs) > 1 and k == exchanged
        kind = {"scan": "source", "filter": "filter", "exchange": "exchange"}.get(
            word.rstrip(":"), "join" if meets else "map"
        )
        metrics = _metrics(figures, mark, inputs, nodes)
        nodes.append(GraphNode(name, kind, word.rstrip(":"), rest, inputs, group=box, metrics=metrics))
        inputs = (name,)
    drawn[id(stage)] = inputs[0]
    return inputs[0]
