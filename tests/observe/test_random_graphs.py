"""Whatever the graph: nothing overlaps, edges lead down, boxes hold their own nodes and no others, and texts fit."""

from __future__ import annotations

import re
import time
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.observe.graph import Graph
from headwater.observe.layout import Layout, Rect, Route, lay_out
from headwater.observe.measure import cells, one_line, text_width
from headwater.observe.node_graph import GraphNode, NodeMetrics
from headwater.testing import HOSTILE_TEXTS

SVG = "{http://www.w3.org/2000/svg}"
GROUPS = [None, None, "a", "b", "a/x", "a/x/deep", "a/y", "c/x", "a rather long name for so small a group"]
TEXTS = st.sampled_from(HOSTILE_TEXTS) | st.text(max_size=20)
METRICS = st.builds(
    NodeMetrics,
    rows_in=st.integers(0, 10**12),
    rows_out=st.integers(0, 10**12),
    seconds=st.floats(0, 1e5),
    state_rows=st.integers(0, 10**9),
    state_bytes=st.integers(0, 10**13),
    steps=st.integers(0, 10**9),
)


@st.composite
def graphs(draw: st.DrawFn, *, most: int = 14) -> Graph:
    count = draw(st.integers(1, most))
    nodes = []
    for i in range(count):
        earlier = st.lists(st.integers(0, i - 1).map(str), max_size=3) if i else st.just([])
        anywhere = st.lists(st.integers(0, count - 1).map(str), max_size=2, unique=True)
        nodes.append(
            GraphNode(
                str(i),
                draw(st.sampled_from(["join", "filter", "source", "something else"]) | TEXTS),
                draw(TEXTS),
                draw(TEXTS),
                tuple(draw(earlier)),
                draw(TEXTS),
                draw(st.sampled_from(GROUPS)),
                draw(st.none() | METRICS),
                tuple(draw(anywhere)) if draw(st.integers(0, 4)) == 0 else (),
            )
        )
    return Graph(draw(TEXTS), draw(st.permutations(nodes)))


def overlap(a: Rect, b: Rect) -> bool:
    return a.x < b.right and b.x < a.right and a.y < b.bottom and b.y < a.bottom


def within(inner: Rect, outer: Rect) -> bool:
    return inner.x >= outer.x and inner.y >= outer.y and inner.right <= outer.right and inner.bottom <= outer.bottom


def drawn(route: Route) -> list[tuple[float, float]]:
    """Points along an edge, close together, by the rule that the picture draws it by."""
    out: list[tuple[float, float]] = []
    for (x0, y0), (x1, y1) in zip(route.points, route.points[1:], strict=False):
        middle = (y0 + y1) / 2
        for step in range(21):
            t = step / 20
            a, b, c, d = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
            curved = x0 != x1 and y0 != y1
            y = a * y0 + (b + c) * middle + d * y1 if curved else y0 + (y1 - y0) * t
            x = (a + b) * x0 + (c + d) * x1 if curved else x0 + (x1 - x0) * t
            out.append((x, y))
    return out


def is_in(point: tuple[float, float], box: Rect) -> bool:
    return box.x < point[0] < box.right and box.y < point[1] < box.bottom


@given(graphs())
def test_layout(graph: Graph) -> None:
    sizes = {node.id: (16 * (6 + int(node.id) % 9), 38 + 16 * (len(node.detail) % 3)) for node in graph.nodes}
    layout = lay_out(graph, sizes)
    assert {i: (r.width, r.height) for i, r in layout.nodes.items()} == sizes
    paper = Rect(0, 0, layout.width, layout.height)
    assert all(within(r, paper) for r in [*layout.nodes.values(), *(g.rect for g in layout.groups)])
    assert not [pair for pair in combinations(layout.nodes.values(), 2) if overlap(*pair)]
    check_groups(graph, layout)
    check_routes(graph, layout)


def check_groups(graph: Graph, layout: Layout) -> None:
    for node in graph.nodes:
        for depth in range(1, len(node.path) + 1):
            around = [g for g in layout.groups if g.path == node.path[:depth] and within(layout.nodes[node.id], g.rect)]
            assert len(around) == 1
    for group in layout.groups:
        own = [n.id for n in graph.nodes if overlap(layout.nodes[n.id], group.rect)]
        assert own
        assert all(graph[i].path[: len(group.path)] == group.path for i in own)
        assert group.rect.x < group.caption_x
        assert group.caption_x + text_width(group.caption, 11, bold=True) <= group.rect.right
    for one, other in combinations(layout.groups, 2):
        if overlap(one.rect, other.rect):
            assert within(other.rect, one.rect)
            assert other.path[: len(one.path)] == one.path


def check_routes(graph: Graph, layout: Layout) -> None:
    assert [route.edge for route in layout.routes] == list(graph.edges())
    for route in layout.routes:
        source, target = layout.nodes[route.edge.source], layout.nodes[route.edge.target]
        line = drawn(route)
        (x0, y0), (x1, y1) = line[0], line[-1]
        assert source.x <= x0 <= source.right and source.y <= y0 <= source.bottom
        assert target.x <= x1 <= target.right and target.y <= y1 <= target.bottom
        if not route.edge.feedback:
            assert y0 == source.bottom < target.y == y1
            assert [y for _, y in line] == sorted(y for _, y in line)
        assert not [(n, p) for n, box in layout.nodes.items() for p in line if is_in(p, box)]
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in line)
        ends = (graph[route.edge.source], graph[route.edge.target])
        for group in layout.groups:
            if not any(within(layout.nodes[node.id], group.rect) for node in ends):
                assert not [p for p in line if is_in(p, group.rect)]


@given(graphs(), st.sampled_from(["seconds", "rows", "state"]))
def test_svg(graph: Graph, heat: str) -> None:
    text = graph.svg(heat=heat)  # type: ignore[arg-type]
    assert text == graph.svg(heat=heat)  # type: ignore[arg-type]
    root = ET.fromstring(text)
    cards = [g for g in root.iter(f"{SVG}g") if g.get("class") == "node"]
    assert len(cards) == len(graph.nodes)
    sizes = {"label": (13, True), "detail": (11.5, False), "figures": (11, False)}
    for card, node in zip(cards, graph.nodes, strict=True):
        rect = card.find(f"{SVG}rect")
        assert rect is not None
        lines = card.findall(f"{SVG}text")
        for line in lines:
            size, bold = sizes[line.get("class", "").split()[0]]
            assert (
                float(line.get("x", "")) + text_width(line.text or "", size, bold=bold)
                <= float(rect.get("width", "")) - 10
            )
            assert float(line.get("y", "")) < float(rect.get("height", "")) - 6
        shown = lines[0].text or ""
        label = one_line(node.label)
        assert shown == label or (shown.endswith("…") and label.startswith(shown[:-1]))
    edges = [p for p in root.iter(f"{SVG}path") if (p.get("class") or "").startswith("edge")]
    assert len(edges) == len(graph.edges())
    assert [("back" in (p.get("class") or "")) for p in edges] == [e.feedback for e in graph.edges()]
    # No text of a node's becomes an element, an attribute or a rule.
    known = {"svg", "style", "defs", "marker", "path", "rect", "text", "g", "title"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= known
    widest = float(root.get("width", ""))
    for element in root.iter(f"{SVG}text"):
        assert float(element.get("x", "0")) <= widest


@given(graphs(), st.integers(60, 160) | st.none())
def test_text(graph: Graph, width: int | None) -> None:
    text = graph.text(width=width)
    lines = text.split("\n")
    assert all(line.replace("\u200c", "").replace("\u200d", "").isprintable() for line in lines)
    if width is not None:
        assert max(map(cells, lines)) <= width
    tree = lines[: lines.index("")] if "" in lines else lines
    numbered = [int(found[1]) for line in tree[1:] if (found := re.match(r" *(\d+)  ", line))]
    assert numbered == list(range(1, len(graph.nodes) + 1))


@pytest.mark.long
@given(graphs())
def test_dot(graph: Graph) -> None:
    text = graph.dot()
    # Without its quoted texts, a document is made of these words only.
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert '"' not in bare.replace('""', "")
    words = set(re.findall(r"[A-Za-z_]\w*", bare))
    options = (
        "label tooltip fillcolor color style shape labelloc labeljust fontname fontsize penwidth compound constraint"
    )
    allowed = {
        "digraph",
        "subgraph",
        "graph",
        "node",
        "edge",
        "box",
        "t",
        "l",
        "Helvetica",
        "true",
        "gray50",
        "dashed",
        "false",
    }
    left = words - allowed - set(options.split())
    assert all(re.fullmatch(r"n\d+|cluster_\d+", word) for word in left)
    assert bare.count("{") == bare.count("}")
    assert bare.count(" -> ") == len(graph.edges())
    assert bare.count("dashed") == sum(edge.feedback for edge in graph.edges())
    assert all(line.count('"') % 2 == 0 or "\\" in line for line in text.splitlines())


def test_three_hundred_nodes_take_a_moment() -> None:
    nodes = []
    for i in range(300):
        inputs = {0: (), 1: (i - 1,), 2: (i - 1, i - 7), 3: (i // 2,), 4: (i - 3, i // 3)}[i % 5 if i > 7 else 0]
        nodes.append(
            GraphNode(
                str(i), "join", f"node {i}", "on key", tuple(map(str, inputs)), metrics=NodeMetrics(i, i, i, i, i, i)
            )
        )
    graph = Graph("large", nodes)
    spent = []
    for _ in range(3):
        begin = time.process_time()
        graph.svg()
        spent.append(time.process_time() - begin)
    assert min(spent) < 0.3
