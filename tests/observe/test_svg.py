from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

from headwater.observe.graph import Graph
from headwater.observe.node_graph import GraphNode, NodeMetrics
from headwater.observe.palette import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"


def steps(text: str) -> list[int]:
    return [int(step) for step in re.findall(r'class="card h(\d)"', text)]


def nodes(*figures: NodeMetrics | None) -> Graph:
    return Graph("g", [GraphNode(str(i), "map", "m", metrics=m) for i, m in enumerate(figures)])


def test_heat_is_a_share_of_the_hottest() -> None:
    graph = nodes(*(NodeMetrics(0, 10**k, s, 0, 10 ** (6 - k), 1) for k, s in enumerate([0.0, 0.1, 0.5, 0.6])), None)
    assert steps(graph.svg()) == [0, 1, 5, 6, 0]
    assert steps(graph.svg(heat="rows")) == [1, 3, 4, 6, 0]
    assert steps(graph.svg(heat="state")) == [6, 5, 4, 3, 0]
    assert ">600 ms<" in graph.svg()
    assert ">1.0k<" in graph.svg(heat="rows")
    assert ">976.6 KiB<" in graph.svg(heat="state")


def test_state_without_bytes_is_shown_by_rows() -> None:
    graph = nodes(NodeMetrics(0, 0, 0, 5, 0, 1), NodeMetrics(0, 0, 0, 0, 0, 1))
    assert steps(graph.svg(heat="state")) == [6, 0]
    assert ">rows of state<" in graph.svg(heat="state")


def test_no_figures_no_scale(example: tuple[str, Graph]) -> None:
    _, graph = example
    assert ('class="swatch' in graph.svg()) == any(node.metrics for node in graph.nodes)


def test_both_modes_are_in_the_style(spend_graph: Graph) -> None:
    light, dark = spend_graph.svg().split("@media (prefers-color-scheme:dark)")
    assert all(f"fill:{colour}" in light for colour in LIGHT)
    assert all(f"fill:{colour}" in dark for colour in DARK)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_texts_can_be_read_at_every_heat(spend_graph: Graph) -> None:
    light, dark = spend_graph.svg().split("@media (prefers-color-scheme:dark)")
    for rules, scale in ((light, LIGHT), (dark, DARK)):
        for ink in re.findall(r"\.(?:ink|dim)\{fill:(#\w+)\}", rules):
            for colour in scale:
                bright, dim = sorted((luminance(ink), luminance(colour)), reverse=True)
                assert (bright + 0.05) / (dim + 0.05) >= 4.0, (ink, colour)


def test_the_steps_of_heat_look_equally_far_apart() -> None:
    for scale in (LIGHT[1:], DARK[1:]):
        lightness = [luminance(colour) ** (1 / 3) for colour in scale]
        gaps = [abs(a - b) for a, b in pairwise(lightness)]
        assert max(gaps) < 1.5 * min(gaps)


def test_tooltips_say_everything(spend_graph: Graph) -> None:
    root = ET.fromstring(spend_graph.svg())
    title = root.findall(f".//{SVG}g[@class='node']/{SVG}title")[1].text
    assert title == (
        "filter\no.amount > 0 AND o.status = 'paid'\nkind: filter\nrows in: 1,204,112\nrows out: 991,430\n"
        "time: 8.3 ms in 412 steps\nstate: 0 rows, 0 B\n\nWHERE o.amount > 0\n  AND o.status = 'paid'"
    )


def test_long_sql_is_cut() -> None:
    many = "\n".join(f"UNION SELECT {i}" for i in range(50))
    for sql in (many, "x" * 5000):
        text = ET.fromstring(Graph("g", [GraphNode("a", "map", "m", sql=sql)]).svg()).findtext(f".//{SVG}title")
        assert text is not None
        assert text.endswith("\n…")
        assert len(text) < 1400


def test_edges_carry_rows(spend_graph: Graph) -> None:
    root = ET.fromstring(spend_graph.svg())
    rows = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "rows dim"]
    assert rows == ["1.2M", "991k", "50k", "991k", "3.1k"]


def test_ids_differ_between_pictures(spend_graph: Graph, recursive_graph: Graph) -> None:
    ids = [re.findall(r'id="([^"]+)"', g.svg()) for g in (spend_graph, recursive_graph)]
    assert len(set(ids[0]) | set(ids[1])) == 4
