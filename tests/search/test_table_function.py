"""``search(…)`` in FROM: the rows of ``SearchIndex.search`` on every engine, at the version that the query sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.search.conftest import Place

from headwater.base.errors import HeadwaterError
from headwater.lake import scan
from headwater.lakehouse import Lake
from headwater.query.pinned import Pinned
from headwater.search import rows as search_rows
from headwater.sql.query import parse_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ["duckdb", "datafusion", pytest.param("spark", marks=pytest.mark.spark)]


def _rows(first: int, count: int) -> pa.Table:
    words = ["card", "lost", "refund", "paid", "note", "late"]
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "body": [" ".join(words[: 1 + i % 6] * (1 + i % 3)) for i in ids],
            "author": [("ann", "bob", None)[i % 3] for i in ids],
            "amount": [float(i) for i in ids],
        }
    )


@pytest.fixture
def lake(place: Place, request: pytest.FixtureRequest) -> Lake:
    engine = request.node.callspec.params.get("engine") if hasattr(request.node, "callspec") else None
    lake = place.connect(request.getfixturevalue("spark") if engine == "spark" else None)
    lake.write("notes", _rows(0, 60))
    lake.write("people", pa.table({"name": ["ann", "bob"], "age": [30, 40]}))
    lake.index("notes_ix", "notes", text="body", keyword="author", numeric="amount", refresh=True)
    return lake


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ("", {}),
        (", k => 3", {"k": 3}),
        (", k => NULL", {"k": None}),
        (", k => 7, default => 'and'", {"k": 7, "default": "and"}),
        (", filter => 'amount > 20 AND author = ''ann'''", {"filter": "amount > 20 AND author = 'ann'"}),
        (", fields => 'body', lenient => true", {"fields": ["body"], "lenient": True}),
    ],
)
def test_rows_and_scores_are_those_of_search(lake: Lake, engine: Any, options: str, arguments: dict[str, Any]) -> None:
    expected = lake.index("notes_ix").search("refund late", **arguments).to_arrow(scores=True)
    options = options.replace("''", "\\'")
    found = lake.sql(f"SELECT * FROM search('notes', 'refund late'{options})", engine=engine).to_arrow()
    assert found.schema.names == ["id", "body", "author", "amount", "_score"]
    assert found.schema.field("_score").type == pa.float64()
    assert sorted(_tuples(found)) == sorted(_tuples(expected)) and found.num_rows


@pytest.mark.parametrize("engine", ENGINES)
def test_it_joins_groups_and_nests_like_a_table(lake: Lake, engine: Any) -> None:
    joined = lake.sql(
        "SELECT p.age, count(*) AS n, max(s._score) > 0 AS scored FROM search('notes_ix', 'late', k => NULL) AS s "
        "JOIN people p ON p.name = s.author GROUP BY p.age ORDER BY p.age",
        engine=engine,
    )
    late = [i for i in range(60) if i % 6 == 5]
    expected = [(30, sum(i % 3 == 0 for i in late), True), (40, sum(i % 3 == 1 for i in late), True)]
    assert joined.to_tuples() == [one for one in expected if one[1]]
    inner = "SELECT id FROM notes WHERE id IN (SELECT id FROM search('notes', 'late', k => NULL)) ORDER BY id"
    assert [i for (i,) in lake.sql(inner, engine=engine).to_tuples()] == late
    both = (
        "SELECT count(*) FROM search('notes', 'late', k => NULL) a JOIN search('notes', 'paid', k => NULL) b "
        "ON a.id = b.id"
    )
    assert lake.sql(both, engine=engine).scalar() == len(late)


@pytest.mark.parametrize("engine", ENGINES)
def test_parameters_orders_and_names_in_any_case(lake: Lake, engine: Any) -> None:
    text = "SELECT id, _score FROM search('Notes', :q, k => :k, order_by => 'amount', descending => true) ORDER BY id"
    found = lake.sql(text, engine=engine, parameters={"q": "card", "k": 2}).to_tuples()
    assert found == [(58, None), (59, None)], "an order by a column has no scores"
    text = "SELECT count(*) AS n FROM search('NOTES_IX', ?, k => ?) WHERE id >= ?"
    assert lake.sql(text, engine=engine, parameters=["card", 4, 0]).scalar() == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_older_versions(lake: Lake, engine: Any) -> None:
    lake.table("notes").delete("id < 30")
    lake.table("notes").append(_rows(100, 6))
    count = "SELECT count(*) FROM search('notes', 'card', k => NULL{})"
    assert lake.sql(count.format(""), engine=engine).scalar() == 36
    assert lake.sql(count.format(", version => 0"), engine=engine).scalar() == 60
    assert lake.sql(count.format(", version => 1"), engine=engine).scalar() == 30
    with pytest.raises(HeadwaterError) as caught:
        lake.sql(count.format(", version => 9"), engine=engine)
    assert caught.value.code == "E1102"


def test_a_query_sees_one_version(lake: Lake) -> None:
    """What is committed while a query is planned changes neither its tables nor its searches."""
    pinned = Pinned(lake)
    text = "SELECT n.id FROM NOTES n JOIN search('notes', 'card', k => NULL) s ON s.id = n.id"

    def schema(name: str, *moment: Any) -> pa.Schema:
        found = pinned.schema(name, *moment)
        lake.table("notes").append(_rows(100, 5))
        return found

    plan = parse_query(text, schema, functions=lambda name, given: pinned.function(name, given).schema)
    counts = {s.name: sum(b.num_rows for b in source.batches()) for s, source in pinned.sources(plan).items()}
    assert counts == {"NOTES": 60, "search": 60}
    assert lake.table("notes").count() == 65


def test_only_columns_that_are_asked_for_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    real = scan.read_file

    def read(base: Any, add: Any, columns: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        seen.append(list(columns))
        return real(base, add, columns, **options)

    monkeypatch.setattr(search_rows, "read_file", read)
    assert len(lake.sql("SELECT id FROM search('notes', 'late') WHERE amount > 10").to_tuples()) == 9
    assert seen == [["id", "amount"]]
    seen.clear()
    assert lake.sql("SELECT max(_score) > 0 FROM search('notes', 'late')").scalar() is True
    assert seen == [], "scores alone need no rows"


@pytest.mark.spark
def test_only_columns_that_are_named_are_read_for_spark(lake: Lake, spark: SparkSession, place: Place) -> None:
    own = place.connect(spark)
    seen: list[list[str]] = []
    real = scan.read_file

    def read(base: Any, add: Any, columns: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        seen.append(list(columns))
        return real(base, add, columns, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(search_rows, "read_file", read)
        own.sql("SELECT s.ID FROM search('notes', 'late') AS s", engine="spark").to_arrow()
        own.sql("SELECT * FROM search('notes', 'late')", engine="spark").to_arrow()
        own.sql("SELECT name FROM search('notes', 'late') NATURAL JOIN people", engine="spark").to_arrow()
    assert seen == [["id"], ["id", "body", "author", "amount"], ["id", "body", "author", "amount"]]


def test_statements_that_write_can_search(lake: Lake) -> None:
    lake.sql("CREATE TABLE late AS SELECT id, _score FROM search('notes', 'late', k => NULL)")
    assert lake.table("late").count() == 10
    lake.sql("DELETE FROM notes WHERE id IN (SELECT id FROM search('notes', 'late', k => NULL))")
    assert lake.table("notes").count() == 50
    assert lake.sql("SELECT count(*) FROM search('notes', 'late')").scalar() == 0, "the index is behind, and right"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("search('people', 'x')", "E1810", "CREATE SEARCH INDEX name ON people"),
        ("search('nots', 'x')", "E1601", "notes_ix"),
        ("search('notes')", None, "and then options by name"),
        ("search('notes', 'x', 3)", None, "and then options by name"),
        ("search('notes', 7)", None, "and then options by name"),
        ("search('notes', 'x', kk => 3)", None, "no option `kk`"),
        ("search('notes', 'x', k => 'a')", None, "`k`"),
        ("search('notes', 'x', k => true)", None, "`k`"),
        ("search('notes', 'x', k => 1, k => 2)", None, "twice"),
        ("search('notes', 'x', version => 0, timestamp => '2024-01-31')", None, "not both"),
        ("search('notes', 'x', timestamp => 'soon')", None, "no timestamp"),
        ("search('notes', 'x \"')", "E1801", "never closed"),
        ("search('notes', 'nope:x')", "E1807", "no field `nope`"),
        ("search('notes', 'x', fields => 'id')", "E1807", "no field `id`"),
        ("search('notes', 'x', filter => 'zz > 3')", "E1002", "no column `zz`"),
        ("search('notes', 'x', order_by => 'body')", "E1809", "order"),
        ("search('notes', 'x', default => 'xor')", "E1001", "default"),
    ],
)
def test_mistakes_are_explained(lake: Lake, engine: Any, call: str, code: str | None, said: str) -> None:
    with pytest.raises(HeadwaterError) as caught:
        lake.sql(f"SELECT * FROM {call}", engine=engine).to_arrow()
    assert code is None or caught.value.code == code
    assert said in str(caught.value)
    assert "engine=" not in str(caught.value), "another engine would not help"


def test_a_table_with_several_indexes_needs_the_name_of_one(lake: Lake) -> None:
    lake.index("by_author", "notes", keyword="author", refresh=True)
    with pytest.raises(HeadwaterError, match="several search indexes") as caught:
        lake.sql("SELECT * FROM search('notes', 'card')")
    assert "by_author, notes_ix" in str(caught.value)
    assert lake.sql("SELECT count(*) FROM search('by_author', 'ann', k => NULL)").scalar() == 20


def test_an_index_that_was_never_built_and_a_column_of_scores(lake: Lake) -> None:
    lake.write("fresh", _rows(0, 3))
    lake.index("fresh_ix", "fresh", text="body")
    with pytest.raises(HeadwaterError) as caught:
        lake.sql("SELECT * FROM search('fresh', 'card')")
    assert caught.value.code == "E1609" and "REFRESH SEARCH INDEX fresh_ix" in str(caught.value)
    lake.write("scored", pa.table({"body": ["a"], "_Score": [1.0]}))
    lake.index("scored_ix", "scored", text="body", refresh=True)
    with pytest.raises(HeadwaterError, match="of its own"):
        lake.sql("SELECT * FROM search('scored', 'a')")


def test_unknown_functions_name_those_that_there_are(lake: Lake) -> None:
    with pytest.raises(HeadwaterError) as caught:
        lake.sql("SELECT * FROM serach('notes', 'x')")
    assert "did you mean `search`?" in str(caught.value)
