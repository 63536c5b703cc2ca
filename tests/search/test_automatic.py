"""Queries that use an index by themselves: the same rows as without it, whatever is asked, and EXPLAIN says so."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.search.conftest import Place

import headwater as hw
from headwater.base import settings
from headwater.lake import snapshot
from headwater.lakehouse import Lake
from headwater.search import narrowing, reader, split_store
from headwater.search.discovery import forget_names
from headwater.testing.requests import CountedServer, counted
from headwater.testing.s3_server import S3Server

WORDS = [
    "card", "Card", "lost", "refund", "re-fund", "größe", "GRÖSSE", "ß", "100%", "a_b", "naïve", "x" * 40, "it's", "日本",
    "\\n", "i\u0307", "e\u0301", "tab\tbed", "zz9", "", "card.lost", "ﬁne",
]  # fmt: skip
DAY = date(2024, 1, 1)


def _rows(rng: random.Random, first: int, count: int) -> pa.Table:
    def text() -> str | None:
        return None if rng.random() < 0.08 else " ".join(rng.choices(WORDS, k=rng.randrange(6)))

    floats = [0.0, -0.0, 1.5, float("nan"), float("inf"), -7.25, 1e300, None]
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "body": pa.array([text() for _ in range(count)], pa.string()),
            "author": pa.array([rng.choice([*WORDS, None]) for _ in range(count)], pa.string()),
            "amount": pa.array([rng.choice(floats) for _ in range(count)], pa.float64()),
            "day": pa.array([rng.choice([DAY + timedelta(days=rng.randrange(9)), None]) for _ in range(count)]),
            "flag": pa.array([rng.choice([True, False, None]) for _ in range(count)], pa.bool_()),
            "part": pa.array([rng.choice(["p", "q"]) for _ in range(count)], pa.string()),
        }
    )


def _fill(lake: Lake, rng: random.Random) -> None:
    """Rows that an index covers, that lie in files without a split, and that were deleted or changed after it was built."""
    lake.write("t", _rows(rng, 0, 300), partition_by=["part"])
    lake.write("u", _rows(rng, 100, 60))
    lake.index(
        "ix", "t", text={"body": {"analyzer": rng.choice(["default", "whitespace", "en_stem", "raw"])}},
        keyword="author", numeric=["amount", "day", "flag"], substring=rng.choice([(), ["body"], ["author"]]),
        refresh=True,
    )  # fmt: skip
    lake.index("iu", "u", text="body", refresh=True)
    if rng.random() < 0.7:
        lake.table("t").delete(f"id % 7 = {rng.randrange(7)}")
        lake.table("t").update({"body": "concat(body, ' lost')"}, where=f"id % 11 = {rng.randrange(11)}")
        lake.table("t").append(_rows(rng, 1000, 40))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _needle(rng: random.Random) -> str:
    text = " ".join(rng.choices(WORDS, k=rng.randrange(1, 3)))
    at = rng.randrange(len(text) + 1)
    return rng.choice([text, text[at:], text[:at], text.upper(), text.lower(), f" {text}", ""])


def _pattern(rng: random.Random) -> str:
    text = _needle(rng).replace("\\", "\\\\")
    return "".join(rng.choice(["%", "_", "", "", text]) for _ in range(4)) if rng.random() < 0.8 else f"%{text}"


def _atom(rng: random.Random, alias: str) -> str:
    column = f"{alias}{rng.choice(['body', 'author'])}"
    needle = _literal(_needle(rng))
    return rng.choice(
        [
            f"contains({column}, {needle})",
            f"startswith({column}, {needle})",
            f"endswith({column}, {needle})",
            f"{column} LIKE {_literal(_pattern(rng))}",
            f"{column} ILIKE {_literal(_pattern(rng))}",
            f"lower({column}) = {needle}",
            f"{column} = {needle}",
            f"{column} <=> {rng.choice([needle, 'NULL'])}",
            f"{column} IN ({needle}, {_literal(_needle(rng))})",
            f"{column} {rng.choice(['<', '<=', '>', '>=', '!='])} {needle}",
            f"{column} IS {rng.choice(['', 'NOT '])}NULL",
            f"{alias}amount {rng.choice(['<', '<=', '>', '>=', '=', '!='])} {rng.choice(['0', '1.5', '-7.25', '1e300'])}",
            f"{alias}amount = double('NaN')",
            f"{alias}day {rng.choice(['<', '>=', '='])} DATE'2024-01-0{rng.randrange(1, 9)}'",
            f"{alias}flag",
            f"NOT {alias}flag",
            f"{alias}id {rng.choice(['<', '>'])} {rng.randrange(300)}",
            f"{alias}part = 'p'",
            f"length({column}) > 5",
        ]
    )


def _condition(rng: random.Random, alias: str = "", depth: int = 2) -> str:
    if not depth or rng.random() < 0.3:
        return _atom(rng, alias)
    left, right = _condition(rng, alias, depth - 1), _condition(rng, alias, depth - 1)
    return rng.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})", f"({left} AND {right})"])


def _query(rng: random.Random) -> str:
    where, other = _condition(rng), _condition(rng, "u.")
    return rng.choice(
        [
            f"SELECT * FROM t WHERE {where}",
            f"SELECT id FROM t WHERE {where}",
            f"SELECT count(*) FROM t WHERE {where}",
            f"SELECT author, count(*), min(id) FROM t WHERE {where} GROUP BY author",
            f"SELECT author FROM (SELECT DISTINCT author FROM t) WHERE author LIKE {_literal(_pattern(rng))}",
            f"SELECT author, count(*) FROM t GROUP BY author HAVING contains(author, {_literal(_needle(rng))})",
            f"SELECT id FROM (SELECT id, body, author, amount, day, flag, part FROM t) WHERE {where} ORDER BY id LIMIT 7",
            f"SELECT t.id, u.id FROM t JOIN u ON t.part = u.part AND {other} WHERE {_condition(rng, 't.')}",
            f"SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.id AND {other} WHERE {_condition(rng, 't.')}",
            f"SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.id WHERE {other}",
            f"SELECT t.id, u.id FROM t FULL JOIN u ON t.id = u.id AND {_condition(rng, 't.')} WHERE {other}",
            f"SELECT id FROM t WHERE {where} AND id IN (SELECT u.id FROM u WHERE {other})",
            f"SELECT id FROM t WHERE {where} OR EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND {other})",
            f"SELECT id FROM t WHERE {where} UNION ALL SELECT u.id FROM u WHERE {other}",
            f"SELECT count(*) FROM t VERSION AS OF 0 WHERE {where}",
        ]
    )


def _answer(lake: Lake, text: str) -> list[str]:
    return sorted(map(repr, lake.sql(text).to_tuples()))


def _plan(lake: Lake, text: str) -> list[str]:
    return [row["plan"] for row in lake.sql(f"EXPLAIN {text}").to_dicts() if ": version" in row["plan"]]


@pytest.fixture(autouse=True)
def _small_tables_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "LEAST_BYTES", 0)


@pytest.mark.parametrize("seed", range(4))
def test_any_query_gives_the_rows_of_a_scan(seed: int, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "MOST_SHARE", 1.0)
    rng, lake, used = random.Random(seed), place.connect(), 0
    _fill(lake, rng)
    for _ in range(40):
        text = _query(rng)
        with settings.override(use_indexes=False):
            expected = _answer(lake, text)
        assert _answer(lake, text) == expected, text
        used += any("verified" in line for line in _plan(lake, text))
    assert used > 10, "or nothing is tested"


@pytest.fixture
def lake(lake: Lake) -> Lake:
    ids = list(range(2000))
    body = [f"note {i} about {'a refund' if i % 200 == 0 else 'nothing'}" for i in ids]
    table = pa.table({"id": ids, "body": body, "n": ids})
    lake.write("notes", table, properties={"delta.columnMapping.mode": "name"})
    return lake


QUERY = "SELECT id FROM notes WHERE contains(body, 'refund') AND id > 300"
FOUND = [(i,) for i in range(400, 2000, 200)]


def test_explain_says_which_index_and_why(lake: Lake) -> None:
    size = f"{lake.table('notes').detail()['size_bytes']:,} bytes"
    plain = f"notes: version 0: 1 of 1 files (0 skipped), at most 2,000 rows, {size}, 2 of 3 columns"
    assert _plan(lake, QUERY) == [plain]
    lake.index("notes_ix", "notes", text="body", refresh=True)
    assert _plan(lake, QUERY) == [
        "notes: version 0: index notes_ix: 10 of 2,000 rows are candidates, verified, 2 of 3 columns"
    ]
    assert sorted(lake.sql(QUERY).to_tuples()) == FOUND
    (common,) = _plan(lake, "SELECT id FROM notes WHERE contains(body, 'note')")
    assert common.endswith("; index notes_ix not used: 2,000 of 2,000 rows are candidates: too many")
    (other,) = _plan(lake, "SELECT id FROM notes WHERE n = 3")
    assert "index" not in other, "it does not cover the column"
    (helpless,) = _plan(lake, "SELECT id FROM notes WHERE length(body) > 3")
    assert helpless.endswith("; index notes_ix not used: the index says nothing about it")
    assert not any("index" in line for line in _plan(lake, "SELECT id FROM notes"))


def test_an_index_that_is_behind_is_used_for_what_it_covers(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.index("notes_ix", "notes", text="body", refresh=True)
    lake.table("notes").delete("id = 400")
    lake.table("notes").append([{"id": 5000, "body": "one more refund", "n": 1}])
    monkeypatch.setattr(reader, "build_splits", None)  # nothing is indexed for a query
    (line,) = _plan(lake, QUERY)
    assert line.endswith("9 of 1,999 rows are candidates, verified, 2 of 3 columns; 1 file without it scanned")
    assert sorted(lake.sql(QUERY).to_tuples()) == [*FOUND[1:], (5000,)]


def test_the_index_with_fewer_candidates_is_used(lake: Lake) -> None:
    lake.index("a", "notes", text="body", refresh=True)
    lake.index("b", "notes", numeric="n", refresh=True)
    (line,) = _plan(lake, f"{QUERY} AND n = 600")
    assert "index b: 1 of 2,000" in line
    assert lake.sql(f"{QUERY} AND n = 600").to_tuples() == [(600,)]


def test_an_index_that_does_not_fit_is_not_used(lake: Lake) -> None:
    lake.index("never_built", "notes", text="body")
    assert "index" not in _plan(lake, QUERY)[0]
    lake.index("never_built").drop()
    lake.index("ix", "notes", text="body", refresh=True)
    assert "index ix" in _plan(lake, QUERY)[0]
    lake.sql("ALTER TABLE notes RENAME COLUMN body TO text")
    assert "index" not in _plan(lake, QUERY.replace("body", "text"))[0]
    lake.sql("ALTER TABLE notes ADD COLUMN body STRING")
    assert "verified" not in _plan(lake, QUERY)[0]
    assert lake.sql(QUERY).to_tuples() == [] and sorted(lake.sql(QUERY.replace("body", "text")).to_tuples()) == FOUND
    lake.sql("CREATE OR REPLACE TABLE notes AS SELECT 700L AS id, 'refund' AS body, 1L AS n")
    assert "verified" not in _plan(lake, QUERY)[0] and lake.sql(QUERY).to_tuples() == [(700,)]


@pytest.mark.usefixtures("on_disk")
def test_a_damaged_index_does_not_stop_a_query(lake: Lake) -> None:
    index = lake.index("ix", "notes", text="body", refresh=True)
    for file in Path(lake.location).rglob("*.cover"):
        file.write_bytes(b"nonsense")
    lake.table("notes").append([{"id": 5000, "body": "one more refund", "n": 1}])  # another snapshot, another reader
    fresh = hw.connect(lake.location)
    split_store._covers.clear()
    assert sorted(fresh.sql(QUERY).to_tuples()) == [*FOUND, (5000,)]
    record = next(Path(lake.location).rglob("records/index/ix/*.json"))
    record.write_text("{}")
    assert sorted(fresh.sql(QUERY).to_tuples()) == [*FOUND, (5000,)]
    assert index.name == "ix"


def test_a_small_table_is_scanned(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.index("ix", "notes", text="body", refresh=True)
    size = lake.table("notes").detail()["size_bytes"]
    monkeypatch.setattr(narrowing, "LEAST_BYTES", size + 1)
    assert "index" not in _plan(lake, QUERY)[0]
    monkeypatch.setattr(narrowing, "LEAST_BYTES", size)
    assert "index ix" in _plan(lake, QUERY)[0]


def test_the_setting_turns_it_off(lake: Lake) -> None:
    lake.index("ix", "notes", text="body", refresh=True)
    assert "index ix" in _plan(lake, QUERY)[0]
    with settings.override(use_indexes=False):
        assert "index" not in _plan(lake, QUERY)[0]
        assert sorted(lake.sql(QUERY).to_tuples()) == FOUND


def test_statements_that_write_from_a_query_use_it_too(lake: Lake) -> None:
    lake.index("ix", "notes", text="body", refresh=True)
    lake.sql(f"CREATE TABLE found AS {QUERY}")
    assert sorted(lake.sql("SELECT * FROM found").to_tuples()) == FOUND
    lake.sql("INSERT INTO notes SELECT id + 10000, body, n FROM notes WHERE contains(body, 'refund')")
    assert lake.sql("SELECT count(*) FROM notes WHERE contains(body, 'refund')").scalar() == 20
    lake.sql("DELETE FROM notes WHERE id IN (SELECT id FROM notes WHERE contains(body, 'refund'))")
    assert lake.sql("SELECT count(*) FROM notes WHERE contains(body, 'refund')").scalar() == 0


@pytest.fixture
def requests(s3: S3Server) -> Iterator[CountedServer]:
    with counted(s3) as server:
        yield server


@pytest.mark.s3
def test_requests_on_object_storage(requests: CountedServer) -> None:
    """A lake without an index is asked for one at most once a minute; splits are not fetched for a query."""
    lake = hw.connect(requests.url("automatic"), storage_options=requests.options)
    lake.write("notes", [{"id": i, "body": f"note {i} {'refund' if i % 100 == 0 else ''}"} for i in range(1000)])
    query = "SELECT id FROM notes WHERE contains(body, 'refund')"

    def total(**changes: Any) -> int:
        with settings.override(**changes), requests.count() as seen:
            assert len(lake.sql(query).to_tuples()) == 10
        return int(seen.total())

    total(use_indexes=False)  # which learns what is in the files
    plain = total(use_indexes=False)
    forget_names(lake.catalog.root)
    assert total() == plain + 1, "the list of indexes"
    assert [total() for _ in range(5)] == [plain] * 5
    assert total(use_indexes=False) == plain
    lake.sql("CREATE SEARCH INDEX ix ON notes (body)")
    assert "index ix: 10 of 1,000" in _plan(lake, query)[0], "what this process defines is known at once"
    snapshot.forget(lake.table("notes").storage)
    assert len(lake.sql(query).to_tuples()) == 10
