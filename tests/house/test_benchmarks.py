"""The benchmark of queries runs at a size of seconds, checks its answers, and knows TPC-H's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from .conftest import Refused

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
GENERATOR = Path(sys.executable).with_name("tpchgen-cli")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "query.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.long
@pytest.mark.skipif(not GENERATOR.is_file(), reason="tpchgen-cli makes TPC-H's data")
def test_all_sections_run_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    peers = "duckdb on files,querybuilder,polars"
    small = ("--scale", "0.001", "--rounds", "1", "--data", str(tmp_path / "tpch"))
    done = run(*small, "--engines", "duckdb", "--peers", peers, "--json", str(out))
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["sections"]
    assert list(figures) == ["tpch", "point", "threads", "vectors"]
    assert len(figures["tpch"]["queries"]) == 22
    assert set(figures["tpch"]["queries"]["q1"]) == {"duckdb", *peers.split(",")}
    assert figures["tpch"]["failures"] == {}
    assert {r["queries"] for r in figures["tpch"]["ratios"].values()} == {22}
    assert {"headwater", "querybuilder, held table", "polars, held table"} <= set(figures["point"]["warm"])
    assert figures["threads"]["duckdb"]["ratio"] > 0
    assert {"hw duckdb, vectors", "hw duckdb, after OPTIMIZE"} <= set(figures["vectors"]["runs"])
    for title in (f["title"] for f in figures.values()):
        assert title in done.stdout
    assert "target" not in done.stdout  # of ratios at full size only

    # What was made is found again, and not taken for another scale.
    again = run("--only", "tpch", "--scale", "1", "--data", str(tmp_path / "tpch"), "--engines", "duckdb")
    assert again.returncode == 1
    assert "hint: give --scale 0.001" in again.stderr


@pytest.mark.parametrize("option", ["--only", "--engines", "--peers"])
def test_unknown_names_are_refused(option: str, refused: Refused) -> None:
    assert "there is no `spoon`; there are: " in refused("query.py", option, "spoon")


def test_known_answers_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from queries import tpch  # type: ignore[import-not-found]

    known = tpch.answers()
    assert list(known) == list(tpch.queries()) == [f"q{n}" for n in range(1, 23)]
    known["q4"].check("q4", pa.table({"p": ["1-URGENT"] * 5, "n": [10594] * 5}))
    with pytest.raises(AssertionError, match="q4: 4 rows"):
        known["q4"].check("q4", pa.table({"p": ["1-URGENT"] * 4, "n": [10594] * 4}))
    with pytest.raises(AssertionError, match="q4: the first row"):
        known["q4"].check("q4", pa.table({"p": ["1-URGENT"] * 5, "n": [10595] * 5}))


def test_other_answers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from queries.measuring import difference  # type: ignore[import-not-found]

    ours = pa.table({"a": [1, 2], "b": [0.5, 25.522006]})
    assert difference(ours, ours, exact=True) is None
    assert difference(ours, ours.rename_columns(["a", "c"]), exact=True) is not None
    assert difference(ours, ours.cast(pa.schema({"a": pa.int32(), "b": pa.float64()})), exact=True) is not None
    cut = pa.table({"x": [1, 2], "y": [0.5, 25.522005]})
    assert difference(ours, cut, exact=False) is None
    assert difference(ours, pa.table({"x": [1, 3], "y": [0.5, 25.522006]}), exact=False) == "a of row 2 is 3, not 2"
    assert difference(ours, ours.slice(1), exact=False) == "1 rows of 2 columns, not 2 of 2"
    assert difference(ours, pa.table({"x": [1, 2], "y": [0.5, None]}), exact=False) is not None
