"""CREATE, REFRESH, DROP, SHOW and DESCRIBE of search indexes: what they make is what ``lake.index`` makes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import HeadwaterError, InputError, NotFoundError
from headwater.lakehouse import Lake
from headwater.search.index import SearchIndex
from headwater.search.statement import create_statement, options_of
from headwater.sql.statements import CreateSearchIndex, read

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "body": ["Card lost, refund asked", "All good", None],
        "title": ["Lost cards", "Fine", "Fine"],
        "author": ["ann", "bob", "ann"],
        "amount": [5.0, 7.5, None],
        "ip": ["10.0.0.1", "::1", None],
        "attrs": pa.array([{"a": 1}, {"a": 2}, None], pa.struct([("a", pa.int64())])),
        "raw": pa.array([b"x", b"y", None], pa.binary()),
        "odd, `name`": ["p", "q", "r"],
    }
)


@pytest.fixture
def lake(lake: Lake) -> Lake:
    lake.write("notes", ROWS, properties={"delta.columnMapping.mode": "name"})
    return lake


@pytest.mark.parametrize(
    ("clauses", "arguments"),
    [
        ("", {}),
        ("(body TEXT)", {"text": "body"}),
        ("(body, author TEXT)", {"text": ["body", "author"]}),
        (
            """(body TEXT, title TEXT WITH (analyzer = 'en_stem', positions = false), author KEYWORD, amount NUMERIC,
            raw BINARY, ip IP, attrs JSON)""",
            {
                "text": {"body": {}, "title": {"analyzer": "en_stem", "positions": False}},
                "keyword": "author",
                "numeric": "amount",
                "binary": "raw",
                "ip": "ip",
                "json": "attrs",
            },
        ),
        (
            """(body TEXT WITH (substring = true), title TEXT WITH (frequencies = false), `odd, ``name``` KEYWORD)
            OPTIONS (analyzer = 'whitespace', hot = 'id, `odd, ``name```', target_rows = 2)""",
            {
                "text": {"body": {}, "title": {"frequencies": False}},
                "keyword": "odd, `name`",
                "substring": "body",
                "analyzer": "whitespace",
                "hot": ["id", "odd, `name`"],
                "target_rows": 2,
            },
        ),
        ("(body) OPTIONS (substring = 'body')", {"text": "body", "substring": ["body"]}),
    ],
)
def test_a_statement_makes_what_python_makes(lake: Lake, clauses: str, arguments: dict[str, Any]) -> None:
    made = lake.sql(f"CREATE SEARCH INDEX by_sql ON notes {clauses}")
    assert made.statement == "CREATE SEARCH INDEX" and made.to_dicts()[0]["num_affected_rows"] == 3
    same = lake.index("by_python", "notes", **arguments)
    assert lake.index("by_sql").meant.to_json() == same.meant.to_json()
    assert lake.index("by_sql").built and not same.built


def test_the_statement_of_an_index_makes_it_again(lake: Lake) -> None:
    lake.index("a", "notes")
    lake.index("b", "notes", text={"title": {"positions": False}, "body": {"analyzer": "de_stem"}}, hot="id")
    lake.index("c", "notes", keyword=["odd, `name`", "author"], substring="author", numeric="amount", target_rows=7)
    lake.index("d", "notes", text="body", analyzer="regex('[a-z''|]+') | without('it''s', 'a|b')", json="attrs")
    for name in "abcd":
        before = lake.index(name).meant
        text = lake.sql(f"SHOW CREATE TABLE {name}").scalar()
        assert text == create_statement(name, before) and text.startswith(f"CREATE SEARCH INDEX {name} ON notes (")
        statement = read(text)
        assert isinstance(statement, CreateSearchIndex) and options_of(statement)
        lake.sql(f"DROP SEARCH INDEX {name}")
        lake.sql(text)
        assert lake.index(name).meant.to_json() == before.to_json()


def test_what_is_there_is_kept_or_replaced(lake: Lake) -> None:
    lake.sql("CREATE SEARCH INDEX ix ON notes (body)")
    with pytest.raises(InputError) as caught:
        lake.sql("CREATE SEARCH INDEX ix ON notes (title)")
    assert caught.value.code == "E1604" and "CREATE OR REPLACE SEARCH INDEX" in str(caught.value)
    lake.sql("CREATE SEARCH INDEX IF NOT EXISTS ix ON notes (title)")
    assert list(lake.index("ix").fields) == ["body"]
    lake.sql("CREATE OR REPLACE SEARCH INDEX ix ON notes (title TEXT)")
    assert list(lake.index("ix").fields) == ["title"]
    assert [r["id"] for r in lake.index("ix").search("lost")] == [1]


def test_refresh_show_describe_and_drop(lake: Lake) -> None:
    lake.sql("CREATE SEARCH INDEX ix ON notes (body)")
    lake.table("notes").append(ROWS)
    report = lake.sql("REFRESH SEARCH INDEX ix").to_dicts()[0]
    assert report["mode"] == "incremental" and report["rows_in"] == 3
    assert report["frontier"] == "notes@1" and report["index"] == "ix"
    assert lake.sql("SHOW SEARCH INDEXES LIKE 'i*'").to_dicts()[0]["indexName"] == "ix"
    assert lake.sql("SHOW SEARCH INDEXES LIKE 'x*'").to_dicts() == []
    facts = {r["col_name"]: r["data_type"] for r in lake.sql("DESCRIBE ix").to_dicts()}
    assert facts["Type"] == "SEARCH INDEX" and facts["Sources"] == "notes" and facts["Frontier"] == "notes@1"
    lake.sql("DROP SEARCH INDEX ix")
    assert lake.sql("SHOW SEARCH INDEXES").to_dicts() == [] and "ix" not in lake.artefacts()
    lake.sql("DROP SEARCH INDEX IF EXISTS ix")
    with pytest.raises(NotFoundError):
        lake.sql("REFRESH SEARCH INDEX ix")


def test_an_index_on_a_view_follows_it(lake: Lake) -> None:
    lake.sql("CREATE MATERIALIZED VIEW by_ann AS SELECT id, body FROM notes WHERE author = 'ann'")
    lake.sql("CREATE SEARCH INDEX ix ON by_ann (body)")
    assert [r["id"] for r in lake.index("ix").search("refund")] == [1]
    lake.sql("INSERT INTO notes (id, body, author) VALUES (9, 'refund two', 'ann')")
    lake.sql("REFRESH SEARCH INDEX ix")
    assert sorted(r["id"] for r in lake.index("ix").search("refund")) == [1, 9]


@pytest.mark.parametrize(
    ("statement", "code", "named"),
    [
        ("CREATE SEARCH INDEX ix ON notes (nope)", "E1002", "nope"),
        ("CREATE SEARCH INDEX ix ON nots", "E1101", "nots"),
        ("CREATE SEARCH INDEX ix ON notes (body NUMERIC)", "E1001", None),
        ("CREATE SEARCH INDEX ix ON notes (body, BODY)", "E1001", None),
        ("CREATE SEARCH INDEX ix ON notes (body TEXT WITH (analyzer = 'zz'))", "E1001", None),
        ("CREATE SEARCH INDEX ix ON notes (amount NUMERIC WITH (positions = false))", "E1001", None),
        ("CREATE SEARCH INDEX ix ON notes (amount WITH (substring = true))", "E1001", None),
        ("CREATE SEARCH INDEX ix ON notes OPTIONS (target_rows = 0)", "E1001", None),
        ("CREATE SEARCH INDEX notes ON notes", "E1005", None),
    ],
)
def test_what_cannot_be_indexed_is_refused_and_leaves_nothing(
    lake: Lake, statement: str, code: str, named: str | None
) -> None:
    with pytest.raises(HeadwaterError) as caught:
        lake.sql(statement)
    assert caught.value.code == code
    if named is not None:
        assert caught.value.position == statement.index(named)
    assert lake.artefacts() == {}


def test_an_index_that_cannot_be_built_is_not_left_behind(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError.bad_argument("body", 1, "something else")

    monkeypatch.setattr(SearchIndex, "build", fail)
    with pytest.raises(InputError):
        lake.sql("CREATE SEARCH INDEX ix ON notes (body)")
    assert lake.artefacts() == {}
