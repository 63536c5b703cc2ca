"""One question to several indexes: what each of them finds by itself, joined by score."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from headwater.base.errors import HeadwaterError, NotFoundError, SearchQueryError
from headwater.lakehouse import Lake


@pytest.fixture
def lake(lake: Lake) -> Lake:
    rng = random.Random(4)
    words = ["card", "lost", "refund", "paid", "late", "fee"]

    def text() -> str | None:
        return None if rng.random() < 0.1 else " ".join(rng.choices(words, k=rng.randint(1, 9)))

    lake.write("notes", pa.table({"id": range(40), "body": [text() for _ in range(40)], "author": ["ann", "bob"] * 20}))
    lake.write("mails", pa.table({"ID": range(100, 130), "subject": [text() for _ in range(30)], "day": ["d"] * 30}))
    lake.index("by_words", "notes", text="body", keyword="author", refresh=True)
    lake.index("by_stems", "notes", text={"body": {"analyzer": "en_stem"}}, refresh=True)
    lake.index("mails_ix", "mails", text="subject", refresh=True)
    return lake


@pytest.mark.parametrize("query", ["card", "refund AND NOT late", '"card lost" OR fee', "paid^3 lost", "*", "absent"])
def test_the_best_of_all_are_the_best_of_each(query: str, lake: Lake) -> None:
    alone = {
        (name, row["id"] if "id" in row else row["ID"]): row["_score"]
        for name in ("by_words", "mails_ix")
        for row in lake.index(name).search(query, k=None).to_pylist(scores=True)
    }
    found = lake.search(query, ["by_words", "mails_ix"], columns=["id"], k=None)
    assert {(row["_index"], row["id"]): row["_score"] for row in found} == alone and len(found) == len(alone)
    assert found.scores == sorted(alone.values(), reverse=True)
    assert found.totals == {name: lake.index(name).count(query) for name in ("by_words", "mails_ix")}
    pages = [lake.search(query, ["by_words", "mails_ix"], columns=["id"], k=7, offset=n) for n in range(0, 80, 7)]
    assert [row for page in pages for row in page] == found.to_pylist()


def test_rows_that_two_indexes_find_come_once_with_their_best_score(lake: Lake) -> None:
    one, two = (lake.index(name).search("card", columns=["id"], k=None) for name in ("by_words", "by_stems"))
    scores = [{row["id"]: row["_score"] for row in each.to_pylist(scores=True)} for each in (one, two)]
    found = lake.search("card", ["by_words", "by_stems"], columns=["id"], k=None).to_pylist()
    assert {row["id"]: row["_score"] for row in found} == {n: max(s[n] for s in scores) for n in scores[0]}
    assert len(found) == len(scores[0])


def test_columns_of_several_tables(lake: Lake) -> None:
    found = lake.search("card", k=5)
    assert found.indexes == ("by_stems", "by_words", "mails_ix")
    assert set(found.to_arrow().schema.names) == {"_index", "_score", "id", "body", "author", "ID", "subject", "day"}
    assert str(found.frontier) == "mails@0 notes@0"
    rows = lake.search("card", ["by_words", "mails_ix"], columns=["author", "DAY"], k=None).to_pylist()
    assert {(row["author"] is None, row["DAY"]) for row in rows} == {(True, "d"), (False, None)}
    assert all(list(row) == ["_index", "_score", "author", "DAY"] for row in rows)
    assert "<b>card</b>" in found._repr_html_() and pa.table(found).num_rows == 5
    for snippets, row in zip(found.snippets(), found, strict=True):
        assert set(snippets) == ({"subject"} if row["_index"] == "mails_ix" else {"body"})


def test_a_field_that_an_index_lacks_matches_nothing_there(lake: Lake) -> None:
    names = ["by_words", "mails_ix"]
    found = lake.search("author:ann", names, columns=["id"], k=None)
    assert found.totals == {"by_words": 20, "mails_ix": 0} and set(found.names) == {"by_words"}
    assert lake.search("NOT author:ann", names, k=None).totals == {"by_words": 20, "mails_ix": 30}
    with pytest.raises(SearchQueryError, match="no field `nosuch`"):
        lake.search("nosuch:x", names)
    with pytest.raises(SearchQueryError, match="never closed"):
        lake.search("(card", names)
    assert lake.search("(card", names, lenient=True).totals == lake.search("card", names).totals


def test_what_cannot_be_asked(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="nosuch"):
        lake.search("card", columns=["nosuch"])
    with pytest.raises(NotFoundError, match="nosuch"):
        lake.search("card", ["by_words", "nosuch"])
    with pytest.raises(HeadwaterError, match="`indexes` is"):
        lake.search("card", [])
    lake.write("other", [{"id": "a text", "body": "card"}])
    lake.index("other_ix", "other", text="body", refresh=True)
    with pytest.raises(HeadwaterError, match="types agree"):
        lake.search("card", ["by_words", "other_ix"]).to_arrow()
    assert len(lake.search("card", ["by_words", "other_ix"], columns=["body"], k=3).to_arrow()) == 3
    assert len(lake.search("card", "other_ix")) == 1


def test_one_version_of_a_table_for_all_of_its_indexes(lake: Lake) -> None:
    lake.table("notes").delete("id < 30")
    lake.table("notes").append(pa.table({"id": [500], "body": ["a card"], "author": ["eve"]}))
    found = lake.search("card", ["by_words", "by_stems"], columns=["id"], k=None)
    wanted = lake.sql("SELECT id FROM notes WHERE contains(body, 'card')").to_arrow()["id"].to_pylist()
    assert sorted(row["id"] for row in found) == sorted(wanted) and str(found.frontier) == "notes@2"
