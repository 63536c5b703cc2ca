from __future__ import annotations

import shutil
import subprocess

import pytest

from headwater.observe.graph import Graph
from headwater.observe.node_graph import GraphNode
from headwater.testing import HOSTILE_TEXTS


def test_escapes() -> None:
    text = Graph("g", [GraphNode("a", "map", 'say "\\N" & go', "line\nbreak")]).dot()
    assert 'label="say \\"\\\\N\\" &amp; go\\nline break"' in text


def test_groups_are_clusters(recursive_graph: Graph) -> None:
    text = recursive_graph.dot()
    assert text.index("subgraph cluster_1 {") < text.index("  subgraph cluster_2 {") < text.index("->")
    assert 'label="fixpoint"' in text
    assert 'label="step"' in text


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz draws it")
def test_graphviz_takes_it(example: tuple[str, Graph]) -> None:
    _, graph = example
    hostile = Graph("".join(HOSTILE_TEXTS[:60]), [GraphNode(t, t, t, t, sql=t, group=t) for t in HOSTILE_TEXTS])
    for text in (graph.dot(), hostile.dot()):
        done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)
        assert b"Error" not in done.stderr
