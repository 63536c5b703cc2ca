"""The benchmark of the incremental engine runs at a size of seconds, and tells wrong answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .conftest import Refused

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "incremental.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.long
def test_all_sections_run_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run("--scale", "0.002", "--rounds", "1", "--sizes", "1,100", "--peers", "", "--json", str(out))
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["sections"]
    assert list(figures) == ["circuit", "strings of 12 bytes", "strings of 40 bytes", "scale", "merges", "bulk"]
    assert set(figures["circuit"]["batches"]) == {"1", "100"}
    assert figures["circuit"]["batches"]["100"]["headwater"]["events_per_cpu_s"] > 0
    assert figures["merges"]["headwater"]["p99_s"] >= figures["merges"]["headwater"]["p50_s"]
    assert set(figures["bulk"]["10000"]) == {"headwater", "duckdb"}
    for title in (f["title"] for f in figures.values()):
        assert title in done.stdout
    assert "target" not in done.stdout  # of ratios at full size only


@pytest.mark.parametrize("option", ["--only", "--peers", "--install", "--sizes"])
def test_unknown_names_are_refused(option: str, refused: Refused) -> None:
    assert "there is no `spoon`; there are: " in refused("incremental.py", option, "spoon")


def test_a_peer_that_is_not_there_is_told(tmp_path: Path, refused: Refused) -> None:
    said = refused("incremental.py", "--peers", "dbsp", "--peers-in", str(tmp_path))
    assert "dbsp is not installed; --install dbsp does it" in said


@pytest.mark.parametrize("text", [0, 12])
def test_the_right_answer_is_that_of_plain_python(text: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from incrementals.feed import Feed  # type: ignore[import-not-found]

    feed = Feed.make(5_000, values=300, text=text)
    live: Counter[tuple[object, int]] = Counter()
    deleted = 0
    for row in feed.events().to_pylist():
        live[row["k"], row["v"]] += row["_weight"]
        assert live[row["k"], row["v"]] >= 0  # nothing is deleted that is not there
        deleted += row["_weight"] < 0
    assert 0.06 < deleted / len(feed) < 0.1
    groups = {row["k"]: row["g"] for row in feed.table().to_pylist()}
    values: dict[str, list[int]] = {}
    for (k, v), count in live.items():
        if k is not None and v is not None and v > 100 and count:
            group = groups[k]
            values.setdefault("null" if group is None else str(group), []).extend([v] * count)
    wanted = [
        {"g": g, "n": len(v), "s": sum(v), "mn": min(v), "mx": max(v), "a": sum(v) / len(v)}
        for g, v in sorted(values.items())
    ]
    assert feed.answer().to_pylist() == wanted
    assert (text > 0) == ("null" in values)


def test_other_processes_read_the_same_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import numpy as np
    from incrementals.feed import NULL, Feed, read_answer

    feed = Feed.make(3_000, text=40)
    events, groups = feed.write(tmp_path)
    records = np.fromfile(events, dtype="<i8").reshape(-1, 4)
    rows = feed.events().to_pylist()
    assert [None if k == NULL else f"k{k:039d}" for k in records[:, 1].tolist()] == [r["k"] for r in rows]
    assert [None if v == NULL else v for v in records[:, 2].tolist()] == [r["v"] for r in rows]
    assert records[:, 3].tolist() == [r["_weight"] for r in rows]
    seen: dict[int, tuple[int, int]] = {}
    for id_, k, v, weight in records.tolist():  # an event that deletes has the id of the one that inserted
        assert (id_ not in seen) if weight > 0 else (seen.pop(id_) == (k, v))
        if weight > 0:
            seen[id_] = (k, v)
    assert len(np.fromfile(groups, dtype="<i8")) == 2 * len(feed.table())
    answer = tmp_path / "answer.txt"
    answer.write_text("null 2 5 1 4 2.5\n7 1 3 3 3 3.0\n")
    assert read_answer(answer).to_pylist() == [
        {"g": "7", "n": 1, "s": 3, "mn": 3, "mx": 3, "a": 3.0},
        {"g": "null", "n": 2, "s": 5, "mn": 1, "mx": 4, "a": 2.5},
    ]
