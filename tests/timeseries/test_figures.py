"""After a run, graphs and explanations of streams say what each operator did."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.observe.node_graph import GraphNode
from headwater.spark import figures
from headwater.spark.figures import Counted, Figures, counted_tables, recorded
from headwater.timeseries.running import stages
from headwater.timeseries.stream import Stream


def _tables(*sizes: int) -> Iterator[pa.Table]:
    for size in sizes:
        yield pa.table({"v": range(size)})


def test_rows_and_own_seconds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(figures, "perf_counter", lambda: clock[0])

    def slow(batches: Iterator[Any]) -> Iterator[pa.Table]:
        for table in _tables(3, 4):
            clock[0] += 1.0
            yield table

    def half(batches: Iterator[Any]) -> Iterator[pa.Table]:
        for table in Counted(slow, 1)(batches):
            clock[0] += 0.25
            yield table.slice(0, 1)

    found: list[Figures] = []

    def work(figures: Figures) -> Iterator[Any]:
        found.append(figures)
        yield from Counted(half, 2)(iter(()))

    assert sum(t.num_rows for t in recorded(work)) == 2
    below, above = found[0].found[1], found[0].found[2]
    assert (below.rows, above.rows, below.tasks) == (7, 2, 1)
    assert below.bytes == 56
    assert (below.seconds, above.seconds) == (2.0, 0.5)  # what the source below took is not its own
    assert list(counted_tables(1, _tables)) == []


def test_a_source_that_fails_leaves_the_figures_of_others_alone() -> None:
    def fails(batches: Iterator[Any]) -> Iterator[pa.Table]:
        yield from _tables(1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(recorded(lambda figures: Counted(fails, 1)(iter(()))))
    assert list(recorded(lambda figures: iter([figures.text()]))) == [""]


ROWS = 600


@pytest.fixture
def stream(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stream]:
    rng = random.Random(1)
    lake = hw.connect(tmp_path / "lake", spark=spark)
    for name in ("trades", "quotes"):
        rows = pa.table(
            {
                "s": [rng.choice("abcd") for _ in range(ROWS)],
                "t": [rng.randrange(900) for _ in range(ROWS)],
                "n": range(ROWS),
                "v": [rng.random() for _ in range(ROWS)],
            }
        )
        lake.write(name, rows)
    monkeypatch.setattr(stages, "_GIVEN_BYTES", 0)
    monkeypatch.setattr(stages, "_SMALL_BYTES", 1)
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    trades, quotes = (lake.stream(name, time="t", by="s", tiebreak="n") for name in ("trades", "quotes"))
    yield trades.filter("n < 300").join_asof(quotes).shift("v")
    spark.conf.set("spark.sql.shuffle.partitions", usual)


def _of(nodes: tuple[GraphNode, ...], label: str) -> list[Any]:
    return [node.metrics for node in nodes if node.label == label]


def test_the_graph_of_a_run_has_figures(stream: Stream, tmp_path: Path) -> None:
    assert all(node.metrics is None for node in stream.graph().nodes)
    assert "[" not in stream.explain()
    found = stream.collect()
    graph = stream.graph()
    scans, (kept,) = _of(graph.nodes, "scan"), _of(graph.nodes, "filter")
    assert [m.rows_out for m in scans] == [ROWS, ROWS]
    assert (kept.rows_in, kept.rows_out) == (ROWS, 300)
    exchanges, (shifted,) = _of(graph.nodes, "exchange"), _of(graph.nodes, "shift")
    assert exchanges[0].rows_in == exchanges[0].rows_out == 300 + ROWS
    assert (shifted.rows_out, found.num_rows) == (300, 300)
    assert shifted.bytes_out > 0
    assert all(m.tasks >= 1 and m.seconds >= 0 for m in (*scans, kept, *exchanges, shifted))
    assert "300 rows" in stream.explain()
    assert "tasks" in graph.text()
    assert "rows out: 300" in graph.svg()
    assert graph.to_dict()["nodes"][-1]["metrics"]["tasks"] >= 1
    # Other actions bring figures of their own, and another stream has none yet.
    assert stream.filter("v > 2").graph().nodes[-1].metrics is None
    assert stream.count() == 300
    assert _of(stream.graph().nodes, "shift")[0].rows_out == 300
    for write in (
        lambda s: s.write("out"),
        lambda s: s.write_parquet(str(tmp_path / "files")),
        lambda s: list(s.batches()),
    ):
        again = stream.filter("n >= 0")
        write(again)
        (last,) = _of(again.graph().nodes, "shift")
        assert last.rows_out == 300


def test_operators_of_sparks_own_are_not_counted(stream: Stream) -> None:
    grouped = stream.lake.stream("trades").group("s").agg(n="count(*)")  # type: ignore[union-attr]
    assert grouped.collect().num_rows == 4
    assert "[" not in grouped.explain()
    assert all(node.metrics is None for node in grouped.graph().nodes)
