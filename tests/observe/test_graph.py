from __future__ import annotations

import json

import pytest

from headwater.observe.graph import Graph
from headwater.observe.node_graph import Edge, GraphNode


def test_a_graph_checks_itself() -> None:
    a = GraphNode("a", "source", "a")
    with pytest.raises(AssertionError, match="same id"):
        Graph("g", [a, a])
    with pytest.raises(AssertionError, match=r"b takes rows of unknown nodes: \['x'\]"):
        Graph("g", [a, GraphNode("b", "map", "b", inputs=("x",))])
    with pytest.raises(AssertionError, match="unknown nodes"):
        Graph("g", [a, GraphNode("b", "map", "b", feedback=("x",))])
    with pytest.raises(AssertionError, match="a cycle that is not marked as feedback"):
        Graph("g", [GraphNode("b", "map", "b", inputs=("c",)), GraphNode("c", "map", "c", inputs=("b",))])


def test_feedback_may_close_a_cycle() -> None:
    graph = Graph(
        "g", [GraphNode("b", "delay", "b", inputs=("c",), feedback=("c",)), GraphNode("c", "map", "c", inputs=("b",))]
    )
    assert graph.edges() == (Edge("c", "b", True), Edge("b", "c", False))
    assert [node.id for node in graph.ordered()] == ["b", "c"]


def test_an_input_may_be_taken_twice() -> None:
    graph = Graph("g", [GraphNode("a", "source", "a"), GraphNode("j", "join", "j", inputs=("a", "a"))])
    assert graph.edges() == (Edge("a", "j", False),) * 2


def test_paths_of_groups() -> None:
    assert GraphNode("a", "k", "l").path == ()
    assert GraphNode("a", "k", "l", group="outer/inner").path == ("outer", "inner")
    assert GraphNode("a", "k", "l", group="/outer//").path == ("outer",)


def test_to_dict_is_all_of_it(example: tuple[str, Graph]) -> None:
    _, graph = example
    document = json.loads(json.dumps(graph.to_dict()))
    assert [n["id"] for n in document["nodes"]] == [n.id for n in graph.nodes]
    assert set(document["nodes"][0]) == {
        "id", "kind", "label", "detail", "inputs", "sql", "group", "metrics", "feedback",
    }  # fmt: skip


def test_graphs_are_values(spend_graph: Graph) -> None:
    assert spend_graph == Graph(spend_graph.title, list(spend_graph.nodes))
    assert spend_graph != Graph("other", spend_graph.nodes)
    assert len({spend_graph, Graph(spend_graph.title, spend_graph.nodes)}) == 1
    assert "_by_id" not in repr(spend_graph)


def test_notebooks_show_the_picture(spend_graph: Graph) -> None:
    assert spend_graph._repr_svg_() == spend_graph.svg()
    assert spend_graph.svg() in spend_graph._repr_html_()
    assert str(spend_graph) == spend_graph.text()


def test_nothing_can_be_drawn_too() -> None:
    graph = Graph("nothing", [])
    assert graph.text() == "nothing: 0 nodes"
    assert graph.svg().endswith("</svg>\n")
    assert graph.dot().endswith("}\n")
