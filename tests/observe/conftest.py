"""Four graphs that stand for all: a plain query, a shared part, a recursion, and almost nothing."""

from __future__ import annotations

import pytest

from headwater.observe.graph import Graph
from headwater.observe.node_graph import GraphNode, NodeMetrics


def node(
    node_id: str,
    kind: str,
    label: str,
    detail: str = "",
    inputs: str = "",
    figures: tuple[int, int, float, int, int, int] | None = None,
    *,
    sql: str = "",
    group: str | None = None,
    feedback: str = "",
) -> GraphNode:
    metrics = None if figures is None else NodeMetrics(*figures)
    return GraphNode(node_id, kind, label, detail, tuple(inputs.split()), sql, group, metrics, tuple(feedback.split()))


def spend() -> Graph:
    where = "WHERE o.amount > 0\n  AND o.status = 'paid'"
    on = "JOIN cards c ON o.card_id = c.id"
    by = "SELECT city, sum(amount), count(*) GROUP BY city"
    return Graph(
        "spend_by_city",
        [
            node("o", "source", "orders", "orders@42", "", (0, 1_204_112, 0.0021, 0, 0, 412), sql="FROM orders o"),
            node(
                "f", "filter", "filter", "o.amount > 0 AND o.status = 'paid'", "o",
                (1_204_112, 991_430, 0.0083, 0, 0, 412), sql=where,
            ),
            node("c", "source", "cards", "cards@17", "", (0, 50_000, 0.0004, 0, 0, 412)),
            node(
                "j", "join", "join", "o.card_id = c.id", "f c",
                (1_041_430, 991_012, 0.0312, 1_041_430, 48_300_112, 412), sql=on,
            ),
            node("a", "aggregate", "aggregate", "sum(amount), count(*) by city", "j",
                 (991_012, 3_120, 0.0121, 812, 65_000, 412), sql=by),
            node("s", "sink", "spend_by_city", "", "a", (3_120, 1, 0.0009, 812, 40_000, 412)),
        ],
    )  # fmt: skip


def shared() -> Graph:
    return Graph(
        "profile",
        [
            node("s", "source", "events"),
            node("f", "filter", "filter", "kind = 'click'", "s"),
            node("a", "aggregate", "aggregate", "count(*) by user", "f"),
            node("b", "aggregate", "aggregate", "max(ts) by user", "f"),
            node("w", "window", "sessions", "gap 30 min", "f"),
            node("j", "join", "join", "on user", "a b"),
            node("k", "join", "join", "on user", "j w"),
            node("o", "sink", "profile", "", "k"),
        ],
    )


def recursion() -> Graph:
    return Graph(
        "reachable_accounts",
        [
            node("e", "source", "transfers", "transfers@88", "", (0, 120_000, 0.001, 0, 0, 40)),
            node("s0", "source", "flagged", "flagged@3", "", (0, 14, 0.0001, 0, 0, 40)),
            node("f", "filter", "filter", "amount > 10000", "e", (120_000, 9_100, 0.002, 0, 0, 40)),
            node("z", "delay", "delay", "one iteration", "", (33_400, 33_400, 0.001, 33_400, 2_100_000, 212),
                 group="fixpoint/step", feedback="d"),
            node("i0", "accumulate", "enter", "flagged", "s0", (14, 14, 0.0001, 0, 0, 212), group="fixpoint"),
            node("i1", "accumulate", "enter", "transfers", "f", (9_100, 9_100, 0.0003, 0, 0, 212), group="fixpoint"),
            node("j", "join", "join", "r.account = t.source", "z i1", (42_500, 61_000, 0.018, 42_500, 3_400_000, 212),
                 group="fixpoint/step", sql="JOIN transfers t ON r.account = t.source"),
            node("p", "project", "project", "t.target AS account", "j", (61_000, 61_000, 0.003, 0, 0, 212),
                 group="fixpoint/step", sql="SELECT t.target"),
            node("u", "union", "union all", "", "i0 p", (61_014, 61_014, 0.001, 0, 0, 212), group="fixpoint/step"),
            node("d", "distinct", "distinct", "account", "u", (61_014, 33_400, 0.011, 33_400, 2_000_000, 212),
                 group="fixpoint/step", sql="UNION"),
            node("x", "accumulate", "leave", "", "d", (33_400, 33_400, 0.001, 0, 0, 40), group="fixpoint"),
            node("c", "source", "accounts", "accounts@5", "", (0, 80_000, 0.0007, 0, 0, 40)),
            node("k", "join", "join", "on account", "x c", (113_400, 33_380, 0.006, 113_400, 9_000_000, 40)),
            node("o", "sink", "reachable_accounts", "", "k", (33_380, 33_380, 0.0008, 0, 0, 40)),
        ],
    )  # fmt: skip


def single() -> Graph:
    return Graph("numbers", [node("a", "source", "numbers", "3 rows")])


EXAMPLES = {"spend": spend, "shared": shared, "recursion": recursion, "single": single}


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> tuple[str, Graph]:
    """The name of an example, and the graph."""
    return request.param, EXAMPLES[request.param]()


@pytest.fixture
def recursive_graph() -> Graph:
    return recursion()


@pytest.fixture
def spend_graph() -> Graph:
    return spend()
