"""Spark's own examples of its functions: at least 97% of those that count are right, and none is different or a crash.

`spark_examples.txt` has one line for each example that Spark runs: the function, a hash of the text, what came of it
here, and a hash of Spark's answer. HEADWATER_UPDATE_GOLDEN=1 asks Spark again and writes the file, `docs/functions.md`
with it; every day the texts are read from the session and answered here. The slow tests ask Spark, as views and
through Spark's analyzer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headwater as hw
from headwater.spark.analyzer import analyzed
from headwater.sql.analyzed import plan_of
from headwater.sql.functions.catalogue import by_order
from headwater.testing.spark_examples import Example, Outcome, answer_of_spark, figures, outcome, read_examples

from .oracle import answer_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]
GOLDEN = Path(__file__).parent / "fixtures" / "spark_examples.txt"
Known = dict[tuple[str, str], tuple[Outcome, str]]


def known_outcomes() -> Known:
    """What the file says of each example: the outcome here, and the hash of Spark's answer."""
    found: Known = {}
    for line in GOLDEN.read_text("utf-8").splitlines():
        function, key, said, answer, *_ = line.split(" ")
        found[function, key] = (said, answer)  # type: ignore[assignment]
    return found


def known_figures() -> str:
    """The table of the file, which `docs/functions.md` shows."""
    lines = [line.split(" ", 4) for line in GOLDEN.read_text("utf-8").splitlines()]
    return figures((rest[0] if rest else None, said) for _, _, said, _, *rest in lines)  # type: ignore[misc]


@pytest.fixture(scope="module")
def examples(interpreted: SparkSession) -> list[Example]:
    return read_examples(interpreted)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hw.Lake]:
    lake = hw.connect(str(tmp_path_factory.mktemp("examples")))
    yield lake
    lake.close()


def _asked(lake: hw.Lake, text: str) -> pa.Table:
    return lake.sql(text).to_arrow()


def test_what_spark_documents_is_answered(interpreted: SparkSession, examples: list[Example], lake: hw.Lake) -> None:
    if os.environ.get("HEADWATER_UPDATE_GOLDEN"):
        lines = []
        for example in examples:
            if (expected := answer_of_spark(interpreted, example)) is not None:
                said, _ = outcome(lambda text: _asked(lake, text), example, expected)
                lines.append(f"{example.function} {example.key} {said} {expected} {example.family or ''}".rstrip())
        GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
    known, wrong = known_outcomes(), []
    for example in examples:
        if (example.function, example.key) not in known:
            continue
        said, expected = known[example.function, example.key]
        found, why = outcome(lambda text: _asked(lake, text), example, expected)
        if found != said and example.family is None:
            wrong.append(f"{example.function}: {example.text}\n  is {found} ({why}), and was {said}")
    assert not wrong, "\n".join(wrong)


def test_nearly_all_are_right(examples: list[Example]) -> None:
    known = known_outcomes()
    found = [(e, known[e.function, e.key][0]) for e in examples if (e.function, e.key) in known]
    counted = [said for example, said in found if example.family is None]
    assert len(counted) > 900 and counted.count("right") / len(counted) >= 0.97
    assert "different" not in counted and "crash" not in counted
    assert figures((example.family, said) for example, said in found) == known_figures()


@pytest.mark.slow
def test_sparks_answers_are_those_of_the_file(interpreted: SparkSession, examples: list[Example]) -> None:
    known = known_outcomes()
    asked = [e for e in examples if (e.function, e.key) in known and e.family is None]
    assert not [e.text for e in asked if answer_of_spark(interpreted, e) != known[e.function, e.key][1]]


@pytest.mark.slow
def test_views_have_the_same_answers(examples: list[Example], lake: hw.Lake) -> None:
    """A query over no table is a view all the same: built once, and compared."""
    known, wrong = known_outcomes(), []

    def answer(text: str) -> pa.Table:
        view = lake.view(f"example_{len(seen)}", text, refresh=True)
        rows = view.to_arrow()
        view.drop()
        return rows

    seen: list[tuple[Example, Outcome]] = []
    for example in examples:
        if (example.function, example.key) in known and example.family is None:
            found, why = outcome(answer, example, known[example.function, example.key][1])
            seen.append((example, found))
            # Which row is the first one, and the order of a list, Spark leaves open; a view has a rule.
            is_open = found == "different" and by_order(example.function) in ("place", "list")
            if found in ("different", "crash") and not is_open:
                wrong.append(f"{example.function}: {example.text}\n  {found}: {why}")
    print(figures((None, said) for _, said in seen))
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_sparks_analyzer_gives_the_same_answers(spark: SparkSession, examples: list[Example]) -> None:
    known, wrong = known_outcomes(), []
    seen: list[tuple[Example, Outcome]] = []
    for example in examples:
        if (example.function, example.key) in known and example.family is None:
            found, why = outcome(
                lambda text: answer_of(plan_of(analyzed(spark, text, {})), {}),
                example,
                known[example.function, example.key][1],
            )
            seen.append((example, found))
            if found in ("different", "crash"):
                wrong.append(f"{example.function}: {example.text}\n  {found}: {why}")
    print(figures((None, said) for _, said in seen))
    assert not wrong, "\n".join(wrong)
