"""The benchmark of searches runs at a size of seconds, and tells wrong answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Refused

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "search.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.long
def test_all_sections_run_small(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run("--docs", "3000", "--rounds", "1", "--json", str(out))
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["sections"]
    assert list(figures) == ["queries", "spark", "refresh"]
    queries = figures["queries"]
    assert {"headwater", "hw trigrams", "hw all columns", "sqlite", "sqlite trigram"} <= set(queries["builds"])
    assert all(build["bytes"] > 0 and build["cpu_s"] > 0 for build in queries["builds"].values())
    phrase, substring = queries["questions"]["count, phrase"], queries["questions"]["count, *data*"]
    assert {"headwater", "polars", "duckdb", "spark", "sqlite"} <= set(phrase)
    assert {"headwater", "hw trigrams", "polars", "sqlite trigram"} <= set(substring)
    assert figures["refresh"]["runs"]["refresh"]["cpu_s"] > 0
    assert "target" not in done.stdout  # of figures at full size only


@pytest.mark.parametrize("option", ["--only", "--peers"])
def test_unknown_names_are_refused(option: str, refused: Refused) -> None:
    assert "there is no `spoon`; there are: " in refused("search.py", option, "spoon")


def test_documents_do_not_depend_on_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.searches.corpus import Corpus

    few, more = Corpus(20), Corpus(300)
    (block,), (larger,) = few.blocks(), more.blocks()
    assert block.equals(larger.slice(0, 20))
    assert block.num_columns == 9
    assert few.lengths.tolist() == [len(text.split()) for text in block.column("body").to_pylist()]
    assert few.lengths.tolist() == more.lengths[:20].tolist()


def test_other_answers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.searches.corpus import Corpus
    from benchmarks.searches.questions import QUESTIONS, Ranking, same

    corpus = Corpus(2_000)
    (block,) = corpus.blocks()
    question = next(q for q in QUESTIONS if q.name == "top 10, frequent term")
    texts = {n: text for n, text in enumerate(block.column("body").to_pylist()) if " data " in f" {text} "}
    ranking = Ranking(corpus, question, texts)
    best = sorted(texts, key=lambda n: (-texts[n].lower().split().count("data"), corpus.lengths[n]))[:10]
    assert same("top", None, best, lambda: ranking) is None
    assert "does not match" in str(same("top", None, [*best[:9], -1], lambda: ranking))
    assert "9 rows" in str(same("top", None, best[:9], lambda: ranking))
    longest = sorted(texts, key=lambda n: -corpus.lengths[n])[:10]
    assert "off the best" in str(same("top", None, longest, lambda: ranking))
    assert same("count", 3, 4, lambda: ranking) == "4, not 3"
    assert same("ids", [3, 1], [1, 3], lambda: ranking) is None
    assert same("ids", [3, 1], [1, 2], lambda: ranking) is not None
    assert same("groups", {"a": (1, 2)}, {"a": (1, 3)}, lambda: ranking) is not None
