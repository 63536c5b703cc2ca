"""The benchmark of views on Spark runs at a size of seconds, and says what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.spark_views import curves, paper, per_row

from .conftest import Refused

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_it_runs_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    small = ("--rows", "20000", "--rounds", "1", "--shares", "0.01", "--json", str(out))
    script = str(ROOT / "benchmarks" / "views_spark.py")
    done = subprocess.run([sys.executable, script, *small], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["sections"]
    assert list(figures) == ["build", "curve", "state"]
    assert set(figures["build"]) == {"spark sql", "built by spark", "local"}
    assert set(figures["curve"]["0.01"]) == {"query", "spark", "local"}
    assert list(figures["state"]) == ["1250", "5000", "20000"]


def test_unknown_sections_are_refused(refused: Refused) -> None:
    assert "there is no `spoon`; there are: " in refused("views_spark.py", "--sections", "spoon")


# -- what is computed from figures ---------------------------------------------------------------------------------

KEPT = ROOT / "benchmarks" / "figures" / "views_spark.json"


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    """The figures of the run that the guide shows."""
    found: dict[str, Any] = json.loads(KEPT.read_text())
    return found


def test_curves_cross_where_their_lines_do() -> None:
    shares = [0.0001, 0.01, 1.0]

    def line(cost: float, power: float) -> list[tuple[float, float]]:
        return [(s, cost * s**power) for s in shares]

    for at in (0.0005, 0.03, 0.7):
        # One grows with the change, the other does not; they are equal at `at`.
        assert curves.crossing(line(1 / at, 1), line(1, 0)) == pytest.approx(at)
    assert curves.crossing(line(5, 0), line(1, 0)) == 0.0
    assert curves.crossing(line(1, 0), line(5, 0)) is None
    there_and_back = [(0.0001, 2.0), (0.01, 0.5), (1.0, 2.0)]
    assert curves.crossing(there_and_back, line(1, 0)) == pytest.approx(0.1), "the last time counts"


def test_crossovers_stand_beside_what_auto_goes_by(kept: dict[str, Any]) -> None:
    lines = curves.crossovers(kept)
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "local costs more than spark",
        "spark costs more than query",
        "local costs more than query",
    ]
    assert "takes Spark from 5,000,000 rows" in lines[4]
    assert f"from {kept['auto']['crossover']:,} changed rows on" in lines[5]


def test_the_guide_shows_the_figures_that_are_kept(kept: dict[str, Any]) -> None:
    guides = ROOT / "docs" / "guides"
    page = (guides / "cluster.md").read_text()
    for made in (curves.build_table, curves.change_table, curves.state_table):
        assert made(kept) in page
    assert f"`--rows {kept['rows']}" in page
    told = paper.table_of(paper.paper_of(kept, paper.Cluster()))
    assert told in (guides / "cluster-costs.md").read_text()


def test_the_paper_adds_up(kept: dict[str, Any]) -> None:
    of = kept["sections"]["paper"]

    def lines(**changed: int) -> dict[str, paper.Line]:
        return {line.what: line for line in paper.paper_of(kept, paper.Cluster(**changed))}

    one, wide, much = lines(), lines(executors=200), lines(orders=20_000_000_000)
    cpu, time = one["CPU"], one["time, if all cores are busy"]
    assert time.build * 400 == pytest.approx(cpu.build)
    assert time.refresh > of["refresh_cpu_seconds"]
    assert wide["time, if all cores are busy"].build < 0.51 * time.build
    fetched = "state fetched by a machine that has none"
    assert wide[fetched] == one[fetched], "each machine fetches all of it"
    assert wide["the same, by all machines"].refresh == 2 * one["the same, by all machines"].refresh
    for what in ("read of the sources", "through the shuffle", "state written", "left by jobs for later ones"):
        assert much[what].build == pytest.approx(2 * one[what].build)
        assert much[what].refresh == one[what].refresh, "the change is what it was"
    assert one["shards"].build == much["shards"].build == 4_096


def test_fixed_parts_are_told_from_those_of_each() -> None:
    assert per_row.through((2, 10.0), (10, 26.0)) == (6.0, 2.0)
    assert per_row.through((10, 26.0), (2, 10.0)) == (6.0, 2.0)
    assert per_row.through((2, 10.0), (10, 9.0)) == (9.5, 0.0), "noise is no gain"
    keys = {
        "lake/orders/_delta_log/00000000000000000001.json": "log",
        "lake/_headwater/views/v/manifests/1.json": "manifests",
        "lake/_headwater/views/v/runs/1.run": "runs",
        "lake/_headwater/views/v/spark/000000000001/1-0.arrow": "between jobs",
        "lake/orders/part-0.parquet": "tables",
    }
    assert {key: per_row.part_of(key) for key in keys} == keys


def test_kept_figures_are_drawn_without_measuring(tmp_path: Path) -> None:
    script = str(ROOT / "benchmarks" / "views_spark.py")
    arguments = ("--from", str(KEPT), "--pictures", str(tmp_path), "--paper")
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster_change.svg", "cluster_state.svg"]
    assert "| S3 requests that write |" in done.stdout


@pytest.mark.spark
@pytest.mark.s3
@pytest.mark.slow
def test_figures_of_a_row_are_measured(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    small = ("--rows", "8000", "--rounds", "1", "--sections", "", "--paper", "--json", str(out))
    script = str(ROOT / "benchmarks" / "views_spark.py")
    done = subprocess.run([sys.executable, script, *small], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    of = json.loads(out.read_text())["sections"]["paper"]
    assert all(of[name] > 0 for name in ("source_file_bytes", "shuffled_bytes", "state_bytes", "build_cpu_seconds"))
    assert of["requests"]["refresh"]["log, written"] == [1.0, 0.0], "one commit, whatever the shards"
    assert of["requests"]["build"]["runs, written"][1] >= 1, "each shard writes its runs"
