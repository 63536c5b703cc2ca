"""Pictures of views speak the words of users, and keep their figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.derived import upkeep
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.views import live as lives
from headwater.lakehouse import Lake

OVER = "OVER (PARTITION BY k ORDER BY"
SAID = {
    f"SELECT id, sum(x) {OVER} ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS r FROM t": (
        "1 hour preceding to current row"
    ),
    f"SELECT id, sum(x) {OVER} ts) AS r FROM t": "all rows preceding to current row",
    f"SELECT id, sum(x) {OVER} e RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS r FROM t": (
        "3 days preceding to 1 day following"
    ),
    f"SELECT id, count(*) {OVER} d RANGE BETWEEN 1.5 PRECEDING AND UNBOUNDED FOLLOWING) AS r FROM t": (
        "count(*); 1.50 preceding to all rows following"
    ),
    f"SELECT id, max(x) {OVER} ts, id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS r FROM t": (
        "3 rows preceding to 1 row preceding"
    ),
    f"SELECT id, lag(x, 2, 0D) {OVER} ts, id) AS r FROM t": "x 2 rows before, else 0.0",
    f"SELECT id, lead(x) {OVER} ts, id) AS r FROM t": "x 1 row after",
    "SELECT id FROM t WHERE ts + INTERVAL 90 MINUTE > TIMESTAMP '2024-01-01'": "(ts + interval 1 hour 30 minutes)",
    "SELECT a.id FROM t a JOIN t b ON a.k = b.k AND a.ts < b.ts - INTERVAL 5 SECOND": "- interval 5 seconds",
    "SELECT k, session_window(ts, '5 minutes') AS w FROM t GROUP BY k, session_window(ts, '5 minutes')": (
        "interval 5 minutes"
    ),
}
INTERNAL = re.compile(r"\bNone\b|\d{7,}|add micros|microsecond|count_rows|__hw")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = hw.connect(tmp_path)
    lake.sql("CREATE TABLE t (id BIGINT, k INT, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP, e DATE)")
    lake.sql("INSERT INTO t VALUES (1, 1, 1D, 1.00, TIMESTAMP '2024-01-01 10:00:00', DATE '2024-01-01')")
    return lake


@pytest.mark.parametrize("sql", SAID)
def test_labels_are_in_the_words_of_users(sql: str, lake: Lake) -> None:
    view = lake.view("v", sql)
    graph = view.graph()
    assert SAID[sql] in graph.text(width=None)
    for text in (graph.text(width=None), graph.svg(), graph.dot(), view.explain()):
        assert not INTERNAL.search(re.sub(r"#\d+|#[0-9a-f]{6}|hw-[0-9a-f]+|[\d.]+,[\d.]+", "", text)), text


def test_words_do_not_change_what_state_is_found_by(lake: Lake) -> None:
    """The names of states are those of the tree, in which an interval is a number: state that was saved before is
    found.
    """
    (sql, *_) = SAID
    lake.view("v", sql, refresh=True)
    circuit = lives.live(lake.catalog.root, "v").circuit
    assert circuit is not None
    frames = next(v for v in circuit.vertices if v.node.label == "frames")
    assert frames.node.detail == "sum = sum(x); range -3600000000 to 0"
    assert "range -3600000000 to 0" in frames.node.fingerprint and "1 hour" not in frames.node.fingerprint
    assert len(fingerprints(circuit)) == len(circuit.vertices)


def test_a_view_that_is_opened_again_keeps_its_figures(lake: Lake) -> None:
    view = lake.view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k", refresh=True)
    lake.sql("INSERT INTO t VALUES (2, 1, 2D, 1.00, TIMESTAMP '2024-01-01 10:00:00', DATE '2024-01-01')")
    view.refresh()
    view.optimize()
    assert upkeep.wait(PATIENCE_S)
    before = {node.label: node.metrics for node in view.graph().nodes}
    assert before["aggregate"] is not None
    lives.forget(lake.catalog.root, "v")  # as another process finds it
    again = hw.connect(lake.location).view("v")
    after = {node.label: node.metrics for node in again.graph().nodes}
    one, other = before["aggregate"], after["aggregate"]
    assert other is not None and one is not None
    assert (other.rows_in, other.rows_out, other.steps) == (one.rows_in, one.rows_out, one.steps)
    assert other.state_rows > 0 and other.state_bytes > 0
    assert "rows in" in again.explain() and "2 steps" in again.explain()
    lake.sql("INSERT INTO t VALUES (3, 2, 2D, 1.00, TIMESTAMP '2024-01-01 10:00:00', DATE '2024-01-01')")
    again.refresh()
    grown = next(node.metrics for node in again.graph().nodes if node.label == "aggregate")
    assert grown is not None and grown.steps == one.steps + 1 and grown.rows_in == one.rows_in + 1


def test_a_view_without_state_has_a_picture_without_figures(lake: Lake) -> None:
    view = lake.view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k")
    assert all(node.metrics is None for node in view.graph().nodes)
    full = lake.view("w", "SELECT k, now() AS s FROM t", policy="full", refresh=True)
    assert "view w, policy full" in full.explain()
