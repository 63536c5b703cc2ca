"""Layout: where every node, group and edge of a graph is drawn.

The problem: groups are boxes around nodes, boxes may nest, no foreign node may stand in one, and edges go in and out of
them. The idea: a group is laid out on its own, from the innermost out, and is then one large node of what surrounds it.
An edge that passes its border ends there, at a port whose place is known when the outer graph is laid out, and the
pieces of an edge are joined in the end.

An edge that is fed back leads from a lower node to an upper one. It is laid out as if it led down, so that there is a
lane for it, and runs beside its nodes: room for it is kept to their right.

Invariants: boxes of nodes and of groups overlap only where one is in the other; an edge that is not fed back ends below
where it begins; an edge runs through no node; all coordinates are whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.observe.columns import in_columns, spread, straight
from headwater.observe.groups import in_pieces
from headwater.observe.layers import BOTTOM, TOP, Box, Layers, Link, in_layers
from headwater.observe.measure import cut, one_line, text_width
from headwater.observe.node_graph import Edge, NodeGraph

__all__ = ["CAPTION_SIZE", "GroupBox", "Layout", "Rect", "Route", "lay_out"]

CAPTION_SIZE = 11
_CAPTION_WIDTH = 220
_PAD_X, _PAD_TOP, _PAD_BOTTOM = 18, 30, 18
_GAP, _GAP_MOST, _PORT_GAP = 44, 104, 14
_LANE, _LANE_FIRST, _LANE_LAST = 14, 12, 8

Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rect:
    """A box, by its upper left corner."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height


@dataclass(frozen=True, slots=True)
class GroupBox:
    """The box of a group, its caption, cut to fit, and where that begins."""

    path: tuple[str, ...]
    rect: Rect
    caption: str
    caption_x: int


@dataclass(frozen=True, slots=True)
class Route:
    """An edge as points from its source to its target; between two that differ in both coordinates it is a curve."""

    edge: Edge
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything's place in a picture of ``width`` by ``height``; groups from the outermost in."""

    width: int
    height: int
    nodes: dict[str, Rect]
    groups: tuple[GroupBox, ...]
    routes: tuple[Route, ...]


@dataclass(slots=True)
class _Part:
    """A group, a piece of one, or the whole."""

    path: tuple[str, ...]
    members: frozenset[int]
    nodes: list[int] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)
    links: list[tuple[int, int, int]] = field(default_factory=list)  # edge, upper unit, lower unit
    width: int = 0
    height: int = 0
    corners: list[Point] = field(default_factory=list)  # of the units: nodes first, then parts
    upper_ports: dict[int, int] = field(default_factory=dict)
    lower_ports: dict[int, int] = field(default_factory=dict)
    routes: dict[int, list[Point]] = field(default_factory=dict)


def lay_out(graph: NodeGraph, sizes: Mapping[str, tuple[int, int]]) -> Layout:
    """
    Place the nodes of a graph, given their sizes: even numbers of pixels.

    Parameters
    ----------
    graph
    sizes
        Width and height of each node, by its id.
    """
    return _Layouter(graph, sizes).run()


class _Layouter:
    def __init__(self, graph: NodeGraph, sizes: Mapping[str, tuple[int, int]]) -> None:
        self.graph = graph
        self.number = {node.id: i for i, node in enumerate(graph.nodes)}
        self.sizes = [sizes[node.id] for node in graph.nodes]
        self.edges = graph.edges()
        self.ends = self._oriented()
        # Lanes beside a node: of its loops, then of edges that end here from below, or begin here and go up.
        self.lanes: list[dict[int, int]] = [{} for _ in graph.nodes]
        self.lane_counts = [0] * len(graph.nodes)
        self._assign_lanes()

    # -- what is above what ----------------------------------------------------------------------------------------

    def _oriented(self) -> list[tuple[int, int]]:
        """Of every edge the upper and the lower node; a node's edge to itself has the same at both ends."""
        ends = [(self.number[e.source], self.number[e.target]) for e in self.edges]
        below: list[list[int]] = [[] for _ in self.graph.nodes]
        for (source, target), edge in zip(ends, self.edges, strict=True):
            if not edge.feedback:
                below[source].append(target)
        for i, edge in enumerate(self.edges):
            source, target = ends[i]
            if edge.feedback and source != target:
                if not _reaches(below, source, target):
                    ends[i] = (target, source)
                below[ends[i][0]].append(ends[i][1])
        return ends

    def _is_reversed(self, edge: int) -> bool:
        return self.ends[edge][0] != self.number[self.edges[edge].source]

    def _assign_lanes(self) -> None:
        for i, (upper, lower) in enumerate(self.ends):
            if upper == lower:
                self.lanes[upper][i] = self.lane_counts[upper]
                self.lane_counts[upper] += 1
        upward, downward = list(self.lane_counts), list(self.lane_counts)
        for i, (upper, lower) in enumerate(self.ends):
            if upper != lower and self._is_reversed(i):
                self.lanes[upper][i], self.lanes[lower][i] = downward[upper], upward[lower]
                downward[upper] += 1
                upward[lower] += 1
        self.lane_counts = [max(pair) for pair in zip(upward, downward, strict=True)]

    # -- groups ----------------------------------------------------------------------------------------------------

    def run(self) -> Layout:
        root = self._divided((), frozenset(range(len(self.graph.nodes))))
        chains: dict[int, list[_Part]] = {}
        _collect(root, [], chains)
        for i, (upper, lower) in enumerate(self.ends):
            if upper != lower:
                self._attach(i, upper, lower, chains[upper], chains[lower])
        self._arrange(root)
        nodes: dict[str, Rect] = {}
        groups: list[GroupBox] = []
        pieces: dict[tuple[int, int], list[Point]] = {}
        self._gather(root, 0, 0, nodes, groups, pieces)
        routes = [self._route(i, chains, pieces, nodes) for i in range(len(self.edges))]
        nodes = {node.id: nodes[node.id] for node in self.graph.nodes}
        return Layout(root.width, root.height, nodes, tuple(groups), tuple(routes))

    def _divided(self, path: tuple[str, ...], members: frozenset[int]) -> _Part:
        depth = len(path)
        part = _Part(path, members)
        groups: dict[str, list[int]] = {}
        for i in sorted(members):
            inner = self.graph.nodes[i].path
            if len(inner) > depth:
                groups.setdefault(inner[depth], []).append(i)
            else:
                part.nodes.append(i)
        inside = [(u, v) for u, v in self.ends if u in members and v in members and u != v]
        part.parts = [self._divided((*path, name), own) for name, own in in_pieces(groups, part.nodes, inside)]
        return part

    def _attach(self, edge: int, upper: int, lower: int, above: list[_Part], below: list[_Part]) -> None:
        """Make an edge known to the part that holds both ends, and to those that hold one of them."""
        common = sum(1 for a, b in zip(above, below, strict=False) if a is b)
        for chain, node, border in ((above, upper, BOTTOM), (below, lower, TOP)):
            for depth in range(common, len(chain)):
                unit = _unit(chain, depth, node)
                ends = (unit, BOTTOM) if border == BOTTOM else (TOP, unit)
                chain[depth].links.append((edge, *ends))
        at = common - 1
        above[at].links.append((edge, _unit(above, at, upper), _unit(below, at, lower)))

    # -- one part --------------------------------------------------------------------------------------------------

    def _arrange(self, part: _Part) -> None:
        for inner in part.parts:
            self._arrange(inner)
        boxes = [self._box(i) for i in part.nodes] + [Box(p.width, p.height) for p in part.parts]
        links = [
            Link(upper, lower, self._port(part, edge, upper, up=False), self._port(part, edge, lower, up=True),
                 loose=self._is_reversed(edge))
            for edge, upper, lower in part.links
        ]  # fmt: skip
        layers = in_layers(boxes, links)
        aligned = straight(layers, links)
        spread(layers, aligned)
        middles = in_columns(layers, aligned)
        tops, heights = _heights(layers, boxes, middles)
        is_root = not part.path
        caption = 0 if is_root else int(text_width(_caption(part.path), CAPTION_SIZE, bold=True)) + 1
        pad_x, pad_top, pad_bottom = (0, 0, 0) if is_root else (_PAD_X, _PAD_TOP, _PAD_BOTTOM)
        wide = max((m + layers.items[i].width // 2 for i, m in enumerate(middles)), default=0)
        part.width = (max(wide, caption) + 2 * pad_x + 1) // 2 * 2
        part.height = (tops[-1] + heights[-1] if tops else 0) + pad_top + pad_bottom
        pad_x += (part.width - 2 * pad_x - wide) // 2
        uppers, lowers = {link.upper for link in links}, {link.lower for link in links}
        for i, box in enumerate(boxes):
            layer = layers.items[i].layer
            top = tops[layer] + _standing(heights[layer] - box.height, above=i in lowers, below=i in uppers)
            part.corners.append((middles[i] - box.width // 2 + pad_x, top + pad_top))
        # The pieces of an edge come in the order of layers; a border adds the stretch through the padding.
        for s in layers.segments:
            edge, upper, lower = part.links[s.link]
            points = part.routes.setdefault(edge, [])
            x0, x1 = middles[s.upper] + (s.upper_at or 0) + pad_x, middles[s.lower] + (s.lower_at or 0) + pad_x
            above, below = layers.items[s.upper], layers.items[s.lower]
            if not points:
                first = 0 if upper == TOP else part.corners[s.upper][1] + boxes[s.upper].height
                points.append((x0, first))
                if upper == TOP:
                    part.upper_ports[edge] = x0
            points.append((x0, tops[above.layer] + heights[above.layer] + pad_top))
            points.append((x1, tops[below.layer] + pad_top))
            if below.box != TOP:
                points.append((x1, part.corners[s.lower][1]))
            elif lower == BOTTOM and below.layer == len(layers.rows) - 1:
                points.append((x1, part.height))
                part.lower_ports[edge] = x1

    def _box(self, node: int) -> Box:
        width, height = self.sizes[node]
        lanes = self.lane_counts[node]
        beside = _LANE_FIRST + _LANE * (lanes - 1) + _LANE_LAST if lanes else 0
        return Box(width + beside, height, beside // 2)

    def _port(self, part: _Part, edge: int, unit: int, *, up: bool) -> int | None:
        if unit < 0:
            return None
        if unit >= len(part.nodes):
            inner = part.parts[unit - len(part.nodes)]
            return (inner.upper_ports if up else inner.lower_ports)[edge] - inner.width // 2
        node = part.nodes[unit]
        if not self._is_reversed(edge):
            return None
        box = self._box(node)
        return self.sizes[node][0] - box.width // 2 + _LANE_FIRST + _LANE * self.lanes[node][edge]

    # -- all together ----------------------------------------------------------------------------------------------

    def _gather(
        self,
        part: _Part,
        x: int,
        y: int,
        nodes: dict[str, Rect],
        groups: list[GroupBox],
        pieces: dict[tuple[int, int], list[Point]],
    ) -> None:
        if part.path:
            groups.append(_captioned(part, Rect(x, y, part.width, part.height)))
        for node, (left, top) in zip(part.nodes, part.corners, strict=False):
            nodes[self.graph.nodes[node].id] = Rect(x + left, y + top, *self.sizes[node])
        for edge, points in part.routes.items():
            pieces[id(part), edge] = [(x + left, y + top) for left, top in points]
        for inner, (left, top) in zip(part.parts, part.corners[len(part.nodes) :], strict=True):
            self._gather(inner, x + left, y + top, nodes, groups, pieces)

    def _route(
        self,
        i: int,
        chains: Mapping[int, Sequence[_Part]],
        pieces: Mapping[tuple[int, int], list[Point]],
        nodes: Mapping[str, Rect],
    ) -> Route:
        edge, (upper, lower) = self.edges[i], self.ends[i]
        high, low = (nodes[self.graph.nodes[n].id] for n in (upper, lower))
        if upper == lower:
            x = high.right + _LANE_FIRST + _LANE * self.lanes[upper][i]
            leave, enter = high.y + high.height * 2 // 3, high.y + high.height // 3
            return Route(edge, ((high.right, leave), (x, leave), (x, enter), (high.right, enter)))
        above, below = chains[upper], chains[lower]
        common = sum(1 for a, b in zip(above, below, strict=False) if a is b)
        parts = [*reversed(above[common:]), above[common - 1], *below[common:]]
        points = [point for part in parts for point in pieces[id(part), i]]
        if self._is_reversed(i):
            enter, leave = high.y + high.height * 5 // 8, low.y + low.height * 3 // 8
            first, last = points[0][0], points[-1][0]
            points = [(high.right, enter), (first, enter), *points, (last, leave), (low.right, leave)]
            points.reverse()
        return Route(edge, _simplified(points))


def _unit(chain: Sequence[_Part], depth: int, node: int) -> int:
    """The unit of ``chain[depth]`` that holds a node: the node itself, or the part around it."""
    part = chain[depth]
    if depth == len(chain) - 1:
        return part.nodes.index(node)
    return len(part.nodes) + next(k for k, inner in enumerate(part.parts) if inner is chain[depth + 1])


def _collect(part: _Part, above: list[_Part], chains: dict[int, list[_Part]]) -> None:
    here = [*above, part]
    for node in part.nodes:
        chains[node] = here
    for inner in part.parts:
        _collect(inner, here, chains)


def _reaches(below: Sequence[Sequence[int]], start: int, goal: int) -> bool:
    seen, stack = {start}, [start]
    while stack:
        i = stack.pop()
        if i == goal:
            return True
        fresh = [j for j in below[i] if j not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return False


def _heights(layers: Layers, boxes: Sequence[Box], middles: Sequence[int]) -> tuple[list[int], list[int]]:
    """The top and the height of every layer; where edges run far to the side there is more room for them."""
    heights = [0] * len(layers.rows)
    for item in layers.items:
        if item.box != TOP:
            heights[item.layer] = max(heights[item.layer], boxes[item.box].height)
    bends = [0] * len(layers.rows)
    for s in layers.segments:
        bend = abs(middles[s.upper] + (s.upper_at or 0) - middles[s.lower] - (s.lower_at or 0))
        layer = layers.items[s.upper].layer
        bends[layer] = max(bends[layer], bend)
    tops, y = [], 0
    for layer, height in enumerate(heights):
        tops.append(y)
        ports = not height or (layer + 1 < len(heights) and not heights[layer + 1])
        least = _PORT_GAP if ports else _GAP
        y += height + min(least + bends[layer] // 10, _GAP_MOST)
    return tops, heights


def _standing(room: int, *, above: bool, below: bool) -> int:
    """Where a box stands in a higher layer: near what it is connected to, at the top, the bottom or in the middle."""
    return room // 2 if above == below else room if below else 0


def _caption(path: tuple[str, ...]) -> str:
    return cut(one_line(path[-1]), CAPTION_SIZE, _CAPTION_WIDTH, bold=True)


def _captioned(part: _Part, rect: Rect) -> GroupBox:
    caption = _caption(part.path)
    width = text_width(caption, CAPTION_SIZE, bold=True)
    places = (_PAD_X, part.width - _PAD_X - int(width) - 1)
    ports = part.upper_ports.values()
    free = [x for x in places if not any(x - 6 < port < x + width + 6 for port in ports)]
    return GroupBox(part.path, rect, caption, rect.x + (free or places)[0])


def _simplified(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points without repetitions, and without those in the middle of a straight stretch."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and (kept[-2][0] == kept[-1][0] == point[0] or kept[-2][1] == kept[-1][1] == point[1]):
            kept.pop()
        kept.append(point)
    return tuple(kept)
