from __future__ import annotations

from headwater.observe.graph import Graph
from headwater.observe.node_graph import GraphNode, NodeMetrics


def test_a_shared_node_is_written_once() -> None:
    graph = Graph(
        "g",
        [
            GraphNode("a", "source", "a"),
            GraphNode("b", "map", "b", inputs=("a",)),
            GraphNode("j", "join", "j", "self", inputs=("b", "b")),
        ],
    )
    assert graph.text().split("\n")[1:] == ["1  j  self", "2  ├─ b", "3  │  └─ a", "   └─ ↑ 2 b"]


def test_groups_and_feedback() -> None:
    graph = Graph(
        "g",
        [
            GraphNode("a", "source", "a"),
            GraphNode("d", "delay", "d", group="loop", feedback=("u",)),
            GraphNode("u", "union", "u", inputs=("a", "d"), group="loop"),
            GraphNode("s", "sink", "s", inputs=("u",)),
        ],
    )
    assert graph.text().split("\n")[1:] == [
        "1  s",
        "2  └─ u  ‹loop›",
        "3     ├─ a",
        "4     └─ d",
        "         └─ ⟲ 2 u",
    ]


def test_shares_of_time() -> None:
    def metrics(seconds: float) -> NodeMetrics:
        return NodeMetrics(1, 1, seconds, 0, 0, 1)

    graph = Graph(
        "g", [GraphNode(str(k), "map", "m", metrics=metrics(s)) for k, s in enumerate((0.75, 0.249, 0.001, 0))]
    )
    assert graph.text().split("\n") == [
        "g: 4 nodes, 1.0 s in 1 step",
        "      rows in  rows out    time  share",
        "1  m        1         1  750 ms    75%",
        "2  m        1         1  249 ms    25%",
        "3  m        1         1  1.0 ms    <1%",
        "4  m        1         1     0 s     0%",
    ]


def test_sql_stands_beside_or_below() -> None:
    graph = Graph("g", [GraphNode("a", "filter", "filter", "a > 1", sql="WHERE a > 1\n  AND a < 1000000000")])
    assert graph.text().split("\n")[1:] == [
        "                  sql",
        "1  filter  a > 1  WHERE a > 1 AND a < 1000000000",
    ]
    assert graph.text(width=40).split("\n")[1:] == [
        "1  filter  a > 1",
        "",
        "   sql",
        "1  WHERE a > 1 AND a < 1000000000",
    ]


def test_a_deep_graph_is_no_recursion() -> None:
    nodes = [GraphNode("0", "source", "0")]
    nodes += [GraphNode(str(i), "map", str(i), inputs=(str(i - 1),)) for i in range(1, 3000)]
    assert len(Graph("deep", nodes).text().split("\n")) == 3001
