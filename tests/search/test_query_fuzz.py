"""Query strings of every kind: an answer or a SearchQueryError, whatever the fields; never another exception, nor much
memory.
"""

from __future__ import annotations

import os
import random

import pytest
from tests.memory import bounded_memory
from tests.search.notes import Notes
from tests.search.questions import random_query

from headwater.base.errors import HeadwaterError, SearchQueryError
from headwater.search.index import SearchIndex
from headwater.testing.hostile import HOSTILE_TEXTS

QUERIES = int(os.environ.get("HEADWATER_TEST_EXAMPLES", "30")) * 10
_MOST_MB = 192
"""A dozen rows take next to nothing: what takes more was built from the text of the query."""
_MANY = "".join(chr(0x4E00 + n) for n in range(10_000))
_PIECES = [
    "body:", "author:", "amount:", "weight:", "open:", "day:", "at:", "raw:", "host:", "place.city:", "tags:", "counts.x:", "nosuch:",
    "a", "card", "*", "?", "~", "~1", "~2*", "^2", "^0", "(", ")", "[", "]", "{", "}", " TO ", " AND ", " OR ", " NOT ", "+", "-", '"',
    "'", "/", "\\", " ", ":", ">", "<=", "IN [", "1", "-1", "1e309", "nan", "99999999999999999999", "2024-02-30", "true", "::1", "/33",
    "İ", "日", "\x00", "\U0010ffff", "(a*)*", "[^a]", "\\d{1000}", "_exists_:", "`",
]  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    notes = Notes(tmp_path_factory.mktemp("fuzz") / "lake", 7)
    found = notes.open("it")
    found.refresh()
    return found


def ask(index: SearchIndex, query: str) -> None:
    for options in ({}, {"lenient": True}, {"default": "and", "fields": ["body", "author"]}):
        try:
            with bounded_memory(_MOST_MB):
                found = index.search(query, columns=["id"], k=None, **options)
                assert len(found) == found.total
        except SearchQueryError as e:
            assert (e.hint and not options.get("lenient", False)) or e.code in (
                "E1802",
                "E1803",
                "E1804",
                "E1805",
                "E1809",
            ), (query, e)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_texts(index: SearchIndex, text: str) -> None:
    for query in (
        text,
        f"body:{text}",
        f'author:"{text}"',
        f"amount:[{text} TO 5]",
        f"/{text}/",
        f"{text}*",
        f"{text}~1",
        f"place.city:{text}",
    ):
        ask(index, query)


@pytest.mark.long
def test_random_pieces(index: SearchIndex) -> None:
    rng = random.Random(os.environ.get("HEADWATER_TEST_SEED", "11"))
    for _ in range(QUERIES):
        ask(index, "".join(rng.choice(_PIECES) for _ in range(rng.randint(1, 9))))


@pytest.mark.long
def test_garbled_queries(index: SearchIndex) -> None:
    rng = random.Random(os.environ.get("HEADWATER_TEST_SEED", "12"))
    for _ in range(QUERIES):
        query = random_query(rng)[:2000]
        at = rng.randrange(len(query))
        ask(index, rng.choice([query[:at], query[:at] + rng.choice(_PIECES) + query[at:], query[at:] + query[:at]]))


@pytest.mark.parametrize(
    ("query", "answered"),
    [
        (f"body:{_MANY[:250]}~2", True), (f"body:{_MANY[:1_000]}~2", False), (f"author:{_MANY}~1", False),
        (" ".join(f"body:{_MANY[n : n + 6]}~2" for n in range(0, 1_200, 6)), True),
        (" ".join(f"body:{_MANY[n : n + 6]}~2" for n in range(0, 9_000, 6)), False), (f"body:{'x' * 50_000}~2", False),
        (f"body:/{'[a-z]?' * 300}/", True), (f"body:/{'[a-z]?' * 8_000}/", False), (f"body:/{'(.{50})' * 20}/", False),
        (f"body:{'?' * 20_000}", True), (f"body:{'*a' * 2_000}*", True),
    ],
)  # fmt: skip
def test_what_the_library_would_need_much_memory_for(index: SearchIndex, query: str, answered: bool) -> None:
    with bounded_memory(_MOST_MB):
        if answered:
            assert index.count(query) <= 12
        else:
            with pytest.raises(SearchQueryError) as raised:
                index.count(query)
            assert raised.value.code in ("E1805", "E1809") and raised.value.hint
    if "~" in query:
        assert bool(index.search(query, lenient=True, columns=["id"]).ignored) != answered


def test_conditions_that_cannot_be_read(index: SearchIndex) -> None:
    for text in ("", "(", "nosuch = 1", "body LIKE", "amount > 'x' AND", "1", "body"):
        with pytest.raises(HeadwaterError):
            index.filter(text).read_all()
