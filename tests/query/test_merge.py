"""MERGE: the clauses of SQL do what those of the table do, and what a plain loop over the rows does."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.base.errors import ExpressionError, InputError, NotFoundError, SchemaError
from headwater.lakehouse import Lake


@pytest.fixture
def t(lake: Lake) -> hw.Table:
    lake.sql("CREATE TABLE t AS SELECT * FROM VALUES (1, 10), (2, 20), (3, 30) AS v(id, n)")
    lake.sql("CREATE TABLE s AS SELECT * FROM VALUES (2, 200), (4, 400) AS v(id, n)")
    return lake.table("t")


def _rows(lake: Lake) -> list[tuple[object, ...]]:
    return sorted(lake.sql("SELECT * FROM t").to_tuples(), key=repr)


def test_an_upsert(lake: Lake, t: hw.Table) -> None:
    done = lake.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).to_pylist()
    counted = {"num_affected_rows": 2, "num_updated_rows": 1, "num_deleted_rows": 0, "num_inserted_rows": 1}
    assert done == [{**counted, "version": 1}]
    assert _rows(lake) == [(1, 10), (2, 200), (3, 30), (4, 400)]
    assert t.history(1)[0].parameters["predicate"] == "t.id = s.id"


def test_every_clause(lake: Lake, t: hw.Table) -> None:
    lake.sql(
        """
        MERGE INTO t AS target USING (SELECT id, max(n) AS n FROM s WHERE n > :least GROUP BY id) AS source (key, value)
        ON target.id = source.key
        WHEN MATCHED AND source.value > 1000 THEN DELETE
        WHEN MATCHED THEN UPDATE SET target.n = value + target.n
        WHEN NOT MATCHED AND value > 1000 THEN INSERT (id) VALUES (-1)
        WHEN NOT MATCHED THEN INSERT (n, id) VALUES (:n, source.key)
        WHEN NOT MATCHED BY SOURCE AND target.id = 1 THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = NULL
        """,
        parameters={"least": 0, "n": 7},
    )
    assert _rows(lake) == [(2, 220), (3, None), (4, 7)]


def test_a_source_at_an_older_version(lake: Lake, t: hw.Table) -> None:
    lake.sql("INSERT OVERWRITE s VALUES (1, -1)")
    lake.sql("MERGE INTO t USING s VERSION AS OF 0 AS old ON t.id = old.id WHEN MATCHED THEN UPDATE SET n = old.n")
    assert _rows(lake) == [(1, 10), (2, 200), (3, 30)]


def test_a_source_made_of_the_target(lake: Lake, t: hw.Table) -> None:
    lake.sql(
        "MERGE INTO t USING (SELECT max(id) AS top FROM t) AS m ON t.id = m.top "
        "WHEN MATCHED THEN UPDATE SET n = 0 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = t.n + 1"
    )
    assert _rows(lake) == [(1, 11), (2, 21), (3, 0)]


def test_a_source_without_a_name(lake: Lake, t: hw.Table) -> None:
    lake.sql("MERGE INTO t USING (SELECT 3 AS k) ON id = k WHEN MATCHED THEN DELETE")
    assert _rows(lake) == [(1, 10), (2, 20)]


def test_names_that_are_words_elsewhere(lake: Lake, t: hw.Table) -> None:
    lake.sql(
        "MERGE INTO t AS base USING s AS assignments ON base.id = assignments.id WHEN MATCHED THEN UPDATE SET n = base.n"
    )
    assert _rows(lake) == [(1, 10), (2, 20), (3, 30)]


def test_new_columns_with_schema_evolution(lake: Lake, t: hw.Table) -> None:
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 9 AS id, 'x' AS note) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    assert _rows(lake) == [(1, 10, None), (2, 20, None), (3, 30, None), (9, None, "x")]


def test_what_does_not_fit(lake: Lake, t: hw.Table) -> None:
    merge = "MERGE INTO t USING {} ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    with pytest.raises(NotFoundError) as caught:
        lake.sql(merge.format("(SELECT 1 AS id) AS s"))
    assert "`n`" in caught.value.message
    with pytest.raises(SchemaError):
        lake.sql(merge.format("(SELECT 1 AS id, 2 AS n, 3 AS more) AS s"))
    with pytest.raises(SchemaError):
        lake.sql(merge.format("(SELECT 1 AS id, 'x' AS n) AS s"))
    with pytest.raises(InputError) as ambiguous:
        lake.sql(merge.format("(SELECT * FROM s UNION ALL SELECT * FROM s) AS s"))
    assert ambiguous.value.code == "E1011"
    with pytest.raises(ExpressionError):
        lake.sql("MERGE INTO t USING s ON t.id IN (SELECT id FROM s) WHEN MATCHED THEN DELETE")
    assert t.version == 0


def test_errors_point_into_the_statement(lake: Lake, t: hw.Table) -> None:
    tail = "WHEN MATCHED AND {} THEN UPDATE SET n = {} WHEN NOT MATCHED THEN INSERT (id) VALUES ({})"
    for text in (
        "MERGE INTO nosuch USING s ON t.id = s.id " + tail.format(1, 1, 1),
        "MERGE INTO t USING nosuch ON t.id = s.id " + tail.format(1, 1, 1),
        "MERGE INTO t USING (SELECT nosuch FROM s) AS s ON t.id = s.id " + tail.format(1, 1, 1),
        "MERGE INTO t USING s ON nosuch = s.id " + tail.format("true", 1, 1),
        "MERGE INTO t USING s ON t.id = s.id " + tail.format("nosuch", 1, 1),
        "MERGE INTO t USING s ON t.id = s.id " + tail.format("true", "nosuch", 1),
        "MERGE INTO t USING s ON t.id = s.id " + tail.format("true", 1, "nosuch"),
    ):
        with pytest.raises(NotFoundError) as caught:
            lake.sql(text)
        assert caught.value.position == text.index("nosuch"), text
    with pytest.raises(NotFoundError):  # a row that is not there has no columns
        lake.sql("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)")


_SIDE = st.dictionaries(st.integers(0, 9), st.integers(-5, 5) | st.none(), max_size=8)


@pytest.mark.long
@given(ours=_SIDE, theirs=_SIDE, parts=st.integers(1, 3))
def test_any_rows(ours: dict[int, int | None], theirs: dict[int, int | None], parts: int) -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])

    def table(rows: list[tuple[int, int | None]]) -> pa.Table:
        return pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], schema)

    with TemporaryDirectory() as folder:
        lake = hw.connect(Path(folder))
        for part in range(parts):
            lake.write("t", table(list(ours.items())[part::parts]))
        lake.write("s", table(list(theirs.items())))
        lake.sql(
            "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED AND s.v IS NOT NULL THEN INSERT (k, v) VALUES (s.k, s.v * 100) "
            "WHEN NOT MATCHED BY SOURCE AND t.v = 0 THEN DELETE"
        )
        expected = {}
        for k, v in ours.items():
            if k not in theirs:
                if v != 0:
                    expected[k] = v
            elif theirs[k] is None or theirs[k] >= 0:  # type: ignore[operator]
                expected[k] = theirs[k]
        expected |= {k: v * 100 for k, v in theirs.items() if k not in ours and v is not None}
        assert dict(lake.sql("SELECT k, v FROM t").to_tuples()) == expected
        assert lake.table("t").count() == len(expected)
