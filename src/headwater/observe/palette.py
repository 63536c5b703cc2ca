"""Colours: one for every kind of operator, and a scale of heat.

The kinds have hues of about the same lightness, that hold on white and on black. The scale has one hue, orange, in
steps that look equally far apart (they are, in OKLCH), from the background to as strong as text can bear. Time is
shown in proportion to the hottest node; rows and state, which range over many powers of ten, by their logarithm.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

from headwater.observe.format import human_bytes, human_count, human_seconds
from headwater.observe.node_graph import Heat, NodeGraph, NodeMetrics

__all__ = ["CURVES", "DARK", "LIGHT", "Scale", "family_of", "kind_colour"]

LIGHT = ("#ffffff", "#fdebdc", "#fdddc2", "#fccea7", "#fbc08c", "#f9b16f", "#f6a14f")
DARK = ("#1e242c", "#3a2b22", "#4a3223", "#5a3823", "#6a3e22", "#7a4420", "#8b4a1d")
_STEPS = len(LIGHT) - 1

_COLOURS = {
    "source": "#009b95",
    "linear": "#4087de",
    "join": "#855bdc",
    "cogroup": "#d44996",
    "delay": "#738292",
    "nest": "#3aa151",
    "exchange": "#908930",
    "sink": "#556380",
}
CURVES = tuple(_COLOURS[f] for f in ("linear", "cogroup", "source", "exchange", "join", "nest", "sink", "delay"))
"""The same colours for the curves of a chart, so that neighbours are far apart."""
_FAMILIES = {
    "source": ("source", "scan", "table", "input", "import", "constant"),
    "linear": ("lift", "linear", "map", "filter", "project", "select", "unnest", "union", "negate", "weigh"),
    "join": ("join", "bilinear", "cross"),
    "cogroup": ("cogroup", "aggregate", "distinct", "group", "rank", "sort", "topk", "window", "except", "intersect"),
    "delay": ("delay", "integrate", "differentiate", "feedback"),
    "nest": ("nest", "recursion", "fixpoint"),
    "exchange": ("exchange", "accumulate", "shuffle", "partition"),
    "sink": ("sink", "output", "view", "export"),
}
_FAMILY_OF = {kind: family for family, kinds in _FAMILIES.items() for kind in kinds}


def family_of(kind: str) -> str:
    """The family whose colour a kind has; a kind that is not known gets one that is always the same.

    >>> family_of("filter"), family_of("outer join"), family_of("Window")
    ('linear', 'join', 'cogroup')
    """
    words = kind.lower().replace("_", " ").replace("-", " ").split()
    for word in reversed(words):
        if word in _FAMILY_OF:
            return _FAMILY_OF[word]
    return list(_COLOURS)[zlib.crc32(kind.encode(errors="replace")) % len(_COLOURS)]


def kind_colour(kind: str) -> str:
    """
    >>> kind_colour("join")
    '#855bdc'
    """
    return _COLOURS[family_of(kind)]


class Scale:
    """How hot each node of a graph is, by one of its figures.

    Examples
    --------
    >>> from headwater.observe.node_graph import GraphNode
    >>> m = NodeMetrics(rows_in=0, rows_out=10, seconds=0.5, state_rows=0, state_bytes=0, steps=1)
    >>> scale = Scale(NodeGraph("g", [GraphNode("a", "source", "a", metrics=m)]), "seconds")
    >>> scale.name, scale.most, scale.step(m), scale.step(None)
    ('time', '500 ms', 6, 0)
    """

    def __init__(self, graph: NodeGraph, heat: Heat) -> None:
        metrics = [node.metrics for node in graph.nodes if node.metrics is not None]
        by_rows = heat == "state" and not any(m.state_bytes for m in metrics)
        self._value: Callable[[NodeMetrics], float]
        if heat == "seconds":
            self.name, self._value = "time", lambda m: m.seconds
        elif heat == "rows":
            self.name, self._value = "rows out", lambda m: m.rows_out
        elif heat == "read":
            self.name, self._value = "read", lambda m: m.bytes_in
        elif heat == "shuffle":
            self.name, self._value = "shuffled", lambda m: m.shuffled_bytes
        elif by_rows:
            self.name, self._value = "rows of state", lambda m: m.state_rows
        else:
            self.name, self._value = "state", lambda m: m.state_bytes
        self._log = heat != "seconds"
        self._top = max((self._value(m) for m in metrics), default=0.0)
        if heat == "seconds":
            self.most = human_seconds(self._top)
        else:
            in_bytes = self.name in ("read", "shuffled", "state")
            self.most = (human_bytes if in_bytes else human_count)(int(self._top))

    def __bool__(self) -> bool:
        """Whether there is any heat to show."""
        return self._top > 0

    def step(self, metrics: NodeMetrics | None) -> int:
        """The step of a node on the scale, 0 for none."""
        value = 0 if metrics is None else self._value(metrics)
        if value <= 0:
            return 0
        if not self._log:
            return math.floor(value / self._top * _STEPS + 0.5)  # what took next to no time is not warm
        share = math.log1p(value) / math.log1p(self._top)
        # A hair above a step is on it: a tenth of the most is the step that a tenth is, whatever the last bit says.
        return min(max(math.ceil(share * _STEPS - 0.01), 1), _STEPS)
