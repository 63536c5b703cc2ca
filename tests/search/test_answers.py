"""Answers that are remembered: the same as those that are not, in bounded memory, and never those of other rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake
from headwater.search import answers
from headwater.search.aggregation import stats, terms
from headwater.search.compiling import Compiler
from headwater.search.index import SearchIndex
from headwater.search.reader import Reader


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    answers.forget_answers()
    yield
    answers.forget_answers()


@pytest.fixture
def index(lake: Lake) -> SearchIndex:
    rng = random.Random(1)
    words = ["card", "lost", "refund", "paid"]
    rows = {"id": range(200), "body": [" ".join(rng.choices(words, k=3)) for _ in range(200)], "n": [1, 2] * 100}
    lake.write("t", pa.table(rows))
    return lake.index("ix", "t", text="body", numeric=["n", "id"], refresh=True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the library was asked."""
    found: list[str] = []
    for name in ("_searched", "count", "aggregate"):
        real = getattr(Reader, name)

        def noted(*given: Any, _real: Any = real, _name: str = name, **more: Any) -> Any:
            found.append(_name)
            return _real(*given, **more)

        monkeypatch.setattr(Reader, name, noted)
    return found


QUESTIONS: list[Any] = [
    lambda ix: ix.search("card", k=7).to_pylist(scores=True),
    lambda ix: ix.search("card", k=7, offset=7).to_pylist(scores=True),
    lambda ix: ix.search("card lost", default="and", k=None).to_pylist(scores=True),
    lambda ix: ix.search("card lost", k=None).to_pylist(scores=True),
    lambda ix: ix.search("*", order_by="id", k=5).to_pylist(scores=True),
    lambda ix: ix.search("*", order_by="id", descending=True, k=5).to_pylist(scores=True),
    lambda ix: ix.search("lost (", lenient=True, k=3).ignored,
    lambda ix: ix.search("card", columns=["n"], k=7).snippets("body"),
    lambda ix: ix.search("card", k=7).explain(3),
    lambda ix: ix.count("paid"),
    lambda ix: ix.aggregate("card", by=terms("n", inner={"s": stats("id")})),
    lambda ix: ix.aggregate("card", by=stats("id")),
]


def test_the_second_answer_is_the_first_and_asks_nothing(index: SearchIndex, asked: list[str]) -> None:
    first = [question(index) for question in QUESTIONS]
    assert len(asked) >= len(QUESTIONS) - 2, "different questions have different answers"
    with hw.settings.override(search_answers_bytes=0):
        assert [question(index) for question in QUESTIONS] == first
    del asked[:]
    assert [question(index) for question in QUESTIONS] == first and asked == []
    index.aggregate("card", by=stats("id"))["by"].clear()
    assert [question(index) for question in QUESTIONS] == first, "whoever changes an answer changes their own"


def test_another_version_or_other_splits_have_other_answers(index: SearchIndex, lake: Lake) -> None:
    before = index.count("card"), len(index.search("card", k=None))
    lake.table("t").delete("n = 2")
    after = lake.sql("SELECT count(*) FROM t WHERE contains(body, 'card')").scalar()
    assert index.count("card") == len(index.search("card", k=None)) == after != before[0]
    assert (index.at(version=0).count("card"), len(index.at(version=0).search("card", k=None))) == before
    lake.table("t").restore(0)
    index.refresh()
    index.vacuum(retention_hours=0)
    assert (index.count("card"), len(index.search("card", k=None))) == before
    lake.index("folded", "t", text={"body": {"analyzer": "whitespace"}}, refresh=True)
    assert lake.index("folded").count("Card") == before[0], "of another index"


def test_memory_is_bounded(index: SearchIndex, asked: list[str]) -> None:
    with hw.settings.override(search_answers_bytes=200_000):
        for k in range(1, 200):
            index.search("card", k=k)
            assert answers._bytes <= 200_000
        assert 5 < len(answers._answers) < 30
        del asked[:]
        index.search("card", k=199)
        assert asked == [], "the latest are there"
        index.search("card", k=1)
        assert asked == ["_searched"], "the oldest are gone"
    with hw.settings.override(search_answers_bytes=20_000):
        answers.forget_answers()
        index.search("card", k=None)
        assert not answers._answers, "one that takes more than its share is not kept"


def test_a_condition_is_asked_again(index: SearchIndex, asked: list[str]) -> None:
    for _ in range(2):
        del asked[:]
        assert index.count("card", filter="n = 1") == len(index.search("card", filter="n = 1", k=None)) > 0
        assert asked


# -- questions that are kept compiled --------------------------------------------------------------------------------


def test_a_question_is_compiled_once_and_anew_for_each_reader(
    index: SearchIndex, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    real = Compiler.compile

    def noted(self: Compiler, node: Any) -> Any:
        compiled.append("")
        return real(self, node)

    monkeypatch.setattr(Compiler, "compile", noted)
    with hw.settings.override(search_answers_bytes=0):
        first = index.count("*ard")
        assert first and index.count("*ard") == first and len(compiled) == 1
        assert index.count("car lost") != index.count("car lost", default="and") and len(compiled) == 3
        lake.write("t", pa.table({"id": [900], "body": ["orchard"], "n": [1]}), mode="append")
        assert index.count("*ard") == first + 1, "the terms of the pattern are those of the reader"
        assert len(compiled) == 4


def test_what_a_lenient_question_left_out_is_kept_too(index: SearchIndex) -> None:
    with hw.settings.override(search_answers_bytes=0):
        found = [index.search("card AND (lost", lenient=True) for _ in range(2)]
        assert found[0].ignored and found[0].ignored == found[1].ignored
        with pytest.raises(hw.SearchQueryError):
            index.search("card AND (lost")


def test_few_and_small_ones_are_kept(lake: Lake) -> None:
    words = [f"w{n}" for n in range(1_200)]
    lake.write("many", pa.table({"body": words}))
    index = lake.index("many_ix", "many", text="body", refresh=True)
    with hw.settings.override(search_answers_bytes=0):
        reader = index.reader()
        assert index.count("w*") == 1_200 and not reader.compiled, "a set of many terms takes memory"
        assert index.count(" OR ".join(words[:400])) == 400 and not reader.compiled, "a long text does, too"
        assert [index.count(word) for word in words[:300]] == [1] * 300
        assert len(reader.compiled) == 256
