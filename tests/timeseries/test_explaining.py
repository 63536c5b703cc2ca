"""What would run, as a graph: exchanges are nodes of their own, and only what meets is a join."""

from __future__ import annotations

from headwater.timeseries.running.explaining import graph_of, text_of
from headwater.timeseries.running.pipes import Stage

SCANS = tuple(Stage((f"scan {name}@0: 1 files",), "8 tasks read files") for name in ("trades", "quotes"))
JOIN = Stage(
    ("as-of join backward on ts", "filter a > 1", "shift a by 1"), "exchange by s into 4, 1 hot key cut", SCANS
)


def test_nodes_and_their_kinds() -> None:
    graph = graph_of(JOIN, "g")
    assert [(n.kind, n.label, n.detail, n.inputs) for n in graph.nodes] == [
        ("source", "scan", "trades@0: 1 files", ()),
        ("source", "scan", "quotes@0: 1 files", ()),
        ("exchange", "exchange", "by s into 4, 1 hot key cut", ("n0", "n1")),
        ("join", "as-of", "join backward on ts", ("n2",)),
        ("filter", "filter", "a > 1", ("n3",)),
        ("map", "shift", "a by 1", ("n4",)),
    ]
    assert [n.group for n in graph.nodes] == ["1: 8 tasks read files", "2: 8 tasks read files", *["3: exchange"] * 4]


def test_a_stage_that_meets_without_an_exchange() -> None:
    stacked = Stage(("union of 2",), "one after the other", SCANS)
    assert [n.kind for n in graph_of(stacked, "g").nodes] == ["source", "source", "join"]
    assert graph_of(Stage((), "rows of Spark's as Arrow", SCANS[:1]), "g").nodes[-1].label == "rows"


def test_all_into_one() -> None:
    found = graph_of(Stage(("agg count(*)",), "exchange: everything into one", SCANS[:1]), "g")
    assert [(n.kind, n.label, n.detail) for n in found.nodes[1:]] == [
        ("exchange", "exchange", "everything into one"),
        ("map", "agg", "count(*)"),
    ]
    assert text_of(JOIN).splitlines()[:2] == ["exchange by s into 4, 1 hot key cut", "  as-of join backward on ts"]
