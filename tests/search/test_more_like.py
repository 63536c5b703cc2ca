"""Rows that are like a text: those that have a word of it, the rarest words first; never a row that is gone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import InputError, NotFoundError
from headwater.lakehouse import Lake
from headwater.search.index import SearchIndex

WORDS = [f"w{n}" for n in range(60)]
ROWS = 120


@pytest.fixture
def index(lake: Lake) -> SearchIndex:
    """Notes of which the first words are frequent and the last rare, in two splits, and one file without any."""
    rng = random.Random(3)

    def text(words: int) -> str:
        return " ".join(WORDS[min(int(rng.expovariate(0.1)), 59)] for _ in range(words))

    for begin in range(0, ROWS, 40):
        ids = range(begin, begin + 40)
        rows: dict[str, Any] = {
            "id": ids, "title": [None if n % 10 == 0 else text(2).upper() for n in ids],
            "body": [f"{text(6)}, alone{n}" for n in ids], "author": [f"Ann {n % 3}" for n in ids], "n": ids,
        }  # fmt: skip
        lake.write("t", pa.table(rows), mode="append")
        if begin < 80:
            options: Any = {"text": ["title", "body"], "keyword": "author", "numeric": "n", "target_rows": 40}
            found = lake.index("ix", "t", **options) if begin == 0 else lake.index("ix")
            found.refresh()
    return lake.index("ix")


def having(index: SearchIndex, text: str, columns: tuple[str, ...] = ("title", "body")) -> set[int]:
    """The rows alive that have a word of a text in one of some columns, by a scan."""
    words = set(text.lower().replace(",", "").split())
    rows = index._environment.table("t").to_arrow().to_pylist()
    return {r["id"] for r in rows if any(words & set((r[c] or "").lower().replace(",", "").split()) for c in columns)}


def ids(index: SearchIndex, text: Any, k: int | None = None) -> list[int]:
    return [row["id"] for row in index.more_like(text, columns=["id"], k=k)]


def test_every_row_with_a_word_of_the_text_is_found(index: SearchIndex) -> None:
    rng = random.Random(5)
    for _ in range(10):
        text = " ".join(rng.sample(WORDS, rng.randint(1, 12)))
        found = index.more_like(text.upper() + "!", columns=["id"], k=None)
        assert {row["id"] for row in found} == having(index, text) and found.total == len(found)
        assert found.scores == sorted(found.scores, reverse=True) and all(score > 0 for score in found.scores)
        assert [row["id"] for row in index.more_like(text, columns=["id"], k=3)] == [row["id"] for row in found][:3]


def test_the_row_with_the_text_is_the_first(index: SearchIndex) -> None:
    for row in index._environment.table("t").to_arrow().to_pylist():
        assert ids(index, row["body"], k=1) == [row["id"]]
        own = {"title": row["title"], "body": row["body"]}  # as a row has them, with nulls
        assert ids(index, own, k=1) == [row["id"]]


def test_rare_words_count_more(index: SearchIndex) -> None:
    frequent = max(WORDS, key=lambda word: len(having(index, word, ("body",))))
    found = index.more_like({"body": f"{frequent} alone7"}, columns=["id"], k=None)
    assert next(row["id"] for row in found) == 7 and len(found) > 10 and found.scores[0] > 1.2 * found.scores[1]
    many = " ".join(f"alone{n}" for n in range(60))
    assert len(ids(index, {"body": many})) in (25, 26), "the library has one more than it is asked for"


def test_texts_of_columns_are_searched_in_these(index: SearchIndex) -> None:
    word = "w3"
    assert set(ids(index, {"title": word})) == having(index, word, ("title",)) != having(index, word)
    both = ids(index, {"TITLE": word, "body": "alone9"})
    assert set(both) == having(index, word, ("title",)) | {9}
    assert set(ids(index, {"author": "Ann 1"})) == set(range(1, ROWS, 3)), "a keyword is one word"
    assert ids(index, {"author": "Ann"}) == []


def test_words_that_no_row_has_change_nothing(index: SearchIndex) -> None:
    for text in ("nowhere absent", "", " ... ", {"body": "nowhere"}, {"body": None}, {"body": "", "title": None}):
        found = index.more_like(text, columns=["id"], k=None)
        assert len(found) == 0 and found.total == 0 and found.to_pylist() == []
    with_absent = index.more_like("w3 nowhere alone9 absent", columns=["id"], k=None)
    without = index.more_like("w3 alone9", columns=["id"], k=None)
    assert with_absent.to_pylist() == without.to_pylist() and len(without) > 1


def test_rows_that_are_deleted_are_not_found(index: SearchIndex) -> None:
    table = index._environment.table("t")
    text = table.to_arrow(where="id = 50")["body"][0].as_py()
    before = ids(index, text)
    table.delete("id = 50 OR id = 90")
    assert before[0] == 50 and set(ids(index, text)) == set(before) - {50, 90} == having(index, text)
    assert ids(index, "alone90") == [] and ids(index.at(version=table.version - 1), text) == before
    index.refresh()
    index.merge()
    assert set(ids(index, text)) == having(index, text) and ids(index, "alone50") == []


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ({"nope": "x"}, {}, "no field"), ({"n": "7"}, {}, "kind integer"), ({"n": 7}, {}, "kind integer"),
        ({}, {}, "by the names of columns"), (7, {}, "by the names of columns"), (None, {}, "by the names"),
        ({"body": 7}, {}, "a text for the field"), ("x", {"k": -1}, "number of rows"), ("x", {"k": 1.5}, "number of rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(text: Any, options: dict[str, Any], words: str, index: SearchIndex) -> None:
    with pytest.raises(InputError) as raised:
        index.more_like(text, **options)
    assert words in f"{raised.value} {raised.value.hint}" and raised.value.hint
    with pytest.raises(NotFoundError):
        index.more_like("x", columns=["nope"])
