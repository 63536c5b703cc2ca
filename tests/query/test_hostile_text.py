"""Texts that would like to be code: as parameters, as texts, as names, as comments and properties, they stay what they are."""

from __future__ import annotations

import pytest
from tests.object_servers import ON_SERVER

from headwater.base.errors import HeadwaterError
from headwater.lakehouse import Lake
from headwater.sql.expressions import parse
from headwater.testing import HOSTILE_TEXTS

_SHORT = [t for t in HOSTILE_TEXTS if len(t) <= 1000]
# What only reaches the text of a commit was tried with every text on the disk: for a server a few of them are enough.
_TOLD = _SHORT[::8] if ON_SERVER else _SHORT


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def test_there_are_many() -> None:
    assert len(set(HOSTILE_TEXTS)) == len(HOSTILE_TEXTS) >= 50


def _orders(lake: Lake) -> list[tuple[int, str]]:
    """A table that holds each text once, written by one INSERT with a parameter for each value."""
    rows = [(-1, "kept"), *enumerate(HOSTILE_TEXTS)]
    lake.sql("CREATE TABLE orders (n INT, s STRING)")
    places = ", ".join(["(?, ?)"] * len(rows))
    lake.sql(f"INSERT INTO orders VALUES {places}", parameters=[v for row in rows for v in row])
    return rows


@pytest.mark.long
def test_as_values_they_are_stored_and_found(lake: Lake) -> None:
    rows = _orders(lake)
    assert sorted(lake.table("orders").to_arrow().to_pylist(), key=lambda r: r["n"]) == [
        {"n": n, "s": s} for n, s in rows
    ]
    for number, text in rows:
        assert lake.sql("SELECT n FROM orders WHERE s = :s", parameters={"s": text}).to_tuples() == [(number,)]


@pytest.mark.long
@pytest.mark.parametrize("first", range(1 if ON_SERVER else 4))
def test_as_values_of_every_statement(lake: Lake, first: int) -> None:
    rows = _orders(lake)
    for number, text in rows[1 + first :: 8]:
        given = {"s": text, "new": f"{text}+", "n": number}
        update = "UPDATE orders SET s = :new WHERE s = :s AND n = :n"
        assert lake.sql(update, parameters=given).to_pylist()[0]["num_affected_rows"] == 1
        merge = "MERGE INTO orders AS t USING (SELECT :s AS s) AS x ON t.s = concat(x.s, '+') WHEN MATCHED THEN UPDATE SET s = :s"
        assert lake.sql(merge, parameters={"s": text}).to_pylist()[0]["num_updated_rows"] == 1
        delete = "DELETE FROM orders WHERE s IN (SELECT ?) AND n >= ?"
        assert lake.sql(delete, parameters=[text, 0]).to_pylist()[0]["num_affected_rows"] == 1
    left = [(-1, "kept"), *(row for i, row in enumerate(rows[1:]) if i % 8 != first)]
    assert sorted(lake.sql("SELECT * FROM orders").to_tuples()) == sorted(left)
    assert lake.tables() == ["orders"]


@pytest.mark.parametrize("text", _TOLD)
def test_as_quoted_texts(lake: Lake, text: str) -> None:
    assert lake.sql(f"SELECT {_quoted(text)} AS s; ").scalar() == text
    assert (
        lake.sql(f"SELECT 1; SELECT {_quoted(text)} AS s -- {text.splitlines()[0] if text.strip() else ''}").scalar()
        == text
    )


def test_as_comments_and_properties(lake: Lake) -> None:
    columns = ", ".join(f"c{i} INT COMMENT {_quoted(t)}" for i, t in enumerate(_SHORT))
    properties = ", ".join(f"'p{i}' = {_quoted(t)}" for i, t in enumerate(_SHORT))
    lake.sql(f"CREATE TABLE t ({columns}) COMMENT {_quoted(''.join(_SHORT))} TBLPROPERTIES ({properties})")
    now = lake.table("t").snapshot
    assert [f.metadata["comment"] for f in now.schema.fields] == _SHORT
    assert [now.configuration[f"p{i}"] for i in range(len(_SHORT))] == _SHORT
    assert now.state.metadata.description == "".join(_SHORT)
    lake.sql(lake.sql("SHOW CREATE TABLE t").scalar().replace("CREATE TABLE t", "CREATE TABLE u"))
    again = lake.table("u").snapshot
    assert again.schema == now.schema and again.configuration == now.configuration


@pytest.mark.long
def test_as_names_of_columns(lake: Lake) -> None:
    """Under column mapping any name will do; quoted, it is the column and nothing else."""
    names: dict[str, str] = {}
    for text in _SHORT:
        if text and text.lower() not in names:
            names[text.lower()] = text
    quoted = [f"`{n.replace('`', '``')}`" for n in names.values()]
    listed = ", ".join(f"{q} INT" for q in quoted)
    lake.sql(f"CREATE TABLE t ({listed}) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    assert lake.table("t").schema.names == list(names.values())
    values = ", ".join(map(str, range(len(quoted))))
    lake.sql(f"INSERT INTO t ({', '.join(reversed(quoted))}) VALUES ({values})")
    lake.sql(f"UPDATE t AS x SET {', '.join(f'x.{q} = x.{q} + 1000' for q in quoted)} WHERE {quoted[0]} >= 0")
    lake.sql(f"DELETE FROM t WHERE {' AND '.join(f'{q} IN (SELECT 1)' for q in quoted)}")
    found = lake.sql(f"SELECT {', '.join(quoted)} FROM t").to_arrow()
    assert found.schema.names == list(names.values())
    assert [c[0].as_py() for c in found.columns] == [1000 + n for n in reversed(range(len(quoted)))]
    assert lake.tables() == ["t"]


def test_as_names_of_tables(lake: Lake) -> None:
    """Names of tables are folders, so that only plain words will do: anything else is refused and makes nothing."""
    lake.sql("CREATE TABLE orders (id INT)")
    for text in _SHORT:
        quoted = f"`{text.replace('`', '``')}`"
        if text in ("__HIVE_DEFAULT_PARTITION__", "__headwater_target"):
            continue
        if text.isascii() and text.isidentifier() and not text.startswith("__"):
            lake.sql(f"CREATE TABLE {quoted} (id INT)")
            assert sorted(lake.tables()) == sorted(["orders", text])
            lake.sql(f"DROP TABLE {quoted}")
        else:
            with pytest.raises(HeadwaterError):
                lake.sql(f"CREATE TABLE {quoted} (id INT)")
            with pytest.raises(HeadwaterError):
                lake.sql(f"DELETE FROM {quoted}")
        assert lake.tables() == ["orders"], text


@pytest.mark.long
def test_what_the_history_says_is_one_condition(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (s STRING); INSERT INTO t VALUES ('x')")
    schema = lake.table("t").schema
    for text in _TOLD:
        lake.sql("DELETE FROM t WHERE s = :s AND s != 'x'", parameters={"s": text})
        lake.sql("INSERT INTO t REPLACE WHERE s = :s SELECT :s", parameters={"s": text})
        predicate = str(lake.table("t").history(1)[0].parameters["predicate"])
        assert predicate.startswith("s = '")
        (conjunct,) = parse(predicate, schema=schema).conjuncts()
        assert (conjunct.column, conjunct.op, conjunct.values) == ("s", "=", (text,))


@pytest.mark.long
def test_as_partition_values(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (n INT, p STRING) PARTITIONED BY (p)")
    texts = [t for t in _SHORT if t and len(t) < 40]
    for number, text in enumerate(texts):
        lake.sql("INSERT INTO t PARTITION (p = ?) VALUES (?)", parameters=[text, number])
    assert {r["p"]: r["n"] for r in lake.table("t").to_pylist()} == {t: n for n, t in enumerate(texts)}
    for number, text in list(enumerate(texts))[::5]:
        lake.sql("INSERT OVERWRITE t PARTITION (p = :p) SELECT :n", parameters={"p": text, "n": number + 1000})
    expected = {t: n + (1000 if n % 5 == 0 else 0) for n, t in enumerate(texts)}
    assert {r["p"]: r["n"] for r in lake.table("t").to_pylist()} == expected
