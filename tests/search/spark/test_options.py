"""Where a value comes from: the option of the read or write, then the session, then the table, then the default."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.search.spark.notes import notes

import headwater as hw
from headwater.base import settings
from headwater.base.errors import InputError
from headwater.search import register
from headwater.search.spark.options import CONF, SourceOptions

_LAYERS = ("option", "session", "table")


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own, whose settings nobody else sees."""
    session = spark.newSession()
    register(session)
    yield session
    register(spark)


def chosen(name: str, values: dict[str, str]) -> SourceOptions:
    given = {name: values["option"]} if "option" in values else {}
    said = {name.lower(): values["session"]} if "session" in values else {}
    properties = {f"headwater.search.{name}": values["table"]} if "table" in values else {}
    return SourceOptions.of({"path": "/t", **given}, said, {}).over(properties, "/t")


@pytest.mark.parametrize("there", [s for n in range(4) for s in itertools.combinations(_LAYERS, n)])
@pytest.mark.parametrize("name", ["index", "fields", "targetRecordsPerSplit", "TEXT", "analyzer"])
def test_the_first_of_the_layers_that_says_it(name: str, there: tuple[str, ...]) -> None:
    found = chosen(name, dict(zip(there, "123", strict=False)))
    exact = {"TEXT": "text"}.get(name, name)
    assert found.text(exact) == ("1" if there else None)
    assert found.names_fields == ("option" in there and exact in ("text", "analyzer"))


def test_names_that_nobody_knows_are_errors_wherever_they_stand() -> None:
    with pytest.raises(InputError, match="no option `qery`") as caught:
        SourceOptions.of({"qery": "x"}, {}, {})
    assert "did you mean `query`" in str(caught.value)
    with pytest.raises(InputError, match="no option `defalt`"):
        SourceOptions.of({}, {"defalt": "and"}, {})
    options = SourceOptions.of({"path": "/t"}, {}, {})
    for wrong in ("defalt", "query", "path", "cacheBytes", "aws_secret_access_key"):
        with pytest.raises(InputError, match=f"property `headwater.search.{wrong}`"):
            options.over({f"headwater.search.{wrong}": "x"}, "/t")
    assert options.over({"delta.appendOnly": "true", "headwater.view": "x"}, "/t") == options


@pytest.mark.parametrize(
    ("option", "setting", "value"),
    [("cacheBytes", "search_cache_bytes", 12_345), ("maxConcurrentLoads", "search_loads", 3),
     ("queryCacheBytes", "search_answers_bytes", 0)],
)  # fmt: skip
def test_settings_for_planner_and_tasks(option: str, setting: str, value: int) -> None:
    found = SourceOptions.of({option: str(value)}, {option: "77"}, {}).settings
    with settings.override(**found):
        assert getattr(settings.current(), setting) == value


def _write(session: SparkSession, path: str, seed: int, **options: Any) -> None:
    frame = session.createDataFrame(notes(100, seed=seed)).coalesce(1)
    frame.write.format("headwater").options(**options).mode("append").save(path)


def test_a_write_cuts_splits_by_the_first_layer_that_says_how(session: SparkSession, tmp_path: Path) -> None:
    lake, path = hw.connect(tmp_path, spark=session), str(tmp_path / "t")
    counted = [0]

    def cut() -> list[int]:
        """The rows of the splits that the last write added."""
        ix = lake.index("t_index")
        rows = sorted(cover.rows for cover in ix.store.covers(ix.record.names).values())
        new = sum(rows) - counted[0]
        counted[0] = sum(rows)
        assert new == 100 and ix.coverage == 1.0 and ix.verify().equal
        return rows

    _write(session, path, 0, text="body")
    assert cut() == [100] and lake.index("t_index").meant.target_rows == 1_000_000
    lake.table("t").set_properties({"headwater.search.targetRecordsPerSplit": "50"})
    _write(session, path, 1)
    assert cut() == [50, 50, 100]
    session.conf.set(f"{CONF}targetRecordsPerSplit", "25")
    register(session)
    _write(session, path, 2)
    assert cut() == [25] * 4 + [50, 50, 100]
    lake.write("u", notes(1, seed=9), properties={"headwater.search.targetRecordsPerSplit": "50"})
    _write(session, str(tmp_path / "u"), 3, targetRecordsPerSplit="40", text="body")
    made = lake.index("u_index")
    assert sorted(cover.rows for cover in made.store.covers(made.record.names).values()) == [1, 20, 40, 40]
    assert made.meant.target_rows == 40, "of a new index it is the definition"


def test_fields_of_the_session_and_the_table_are_for_new_indexes(session: SparkSession, tmp_path: Path) -> None:
    lake, path = hw.connect(tmp_path, spark=session), str(tmp_path / "t")
    session.conf.set(f"{CONF}keyword", "author")
    register(session)
    _write(session, path, 0, text="body")
    assert lake.index("t_index").fields == {"body": "text", "author": "keyword"}
    _write(session, path, 1, text="body")
    session.conf.set(f"{CONF}keyword", "title")
    register(session)
    _write(session, path, 2)
    with pytest.raises(PySparkException, match="E1616"):
        _write(session, path, 3, text="body")
    assert lake.index("t_index").fields == {"body": "text", "author": "keyword"}
    lake.write(
        "u", notes(10, seed=0), properties={"headwater.search.text": "title", "headwater.search.analyzer": "en_stem"}
    )
    session.conf.unset(f"{CONF}keyword")
    register(session)
    _write(session, str(tmp_path / "u"), 1)
    assert lake.index("u_index").fields == {"title": "text"}
    assert lake.index("u_index").meant.fields[0].analyzer.endswith("stemmer(english)")


def test_a_read_takes_how_queries_are_read_from_the_first_layer(session: SparkSession, tmp_path: Path) -> None:
    lake, path = hw.connect(tmp_path, spark=session), str(tmp_path / "t")
    lake.write("t", notes(300, seed=0))
    ix = lake.index("ix", "t", text=["body", "title"], refresh=True)
    lake.index("other", "t", text="title", refresh=True)
    either, both = ix.count("refund card"), ix.count("refund AND card")
    assert either != both

    def read(**options: Any) -> int:
        reading = session.read.format("headwater").options(query="refund card", **options)
        return int(reading.schema("id long").load(path).count())

    register(session)
    with pytest.raises(PySparkException, match="which of the table's indexes: ix, other"):
        read()
    lake.table("t").set_properties({"headwater.search.index": "ix"})
    assert read() == either
    lake.table("t").set_properties({"headwater.search.default": "and"})
    assert read() == both
    session.conf.set(f"{CONF}default", "or")
    register(session)
    assert read() == either and read(default="and") == both
    assert read(index="other", default="and") == lake.index("other").count("refund AND card")
    lake.table("t").set_properties({"headwater.search.fields": "nosuch"})
    with pytest.raises(PySparkException, match="nosuch"):
        read()
    lake.table("t").set_properties({"headwater.search.fields": "title", "headwater.search.defualt": "and"})
    with pytest.raises(PySparkException, match=r"headwater\.search\.defualt"):
        read()
