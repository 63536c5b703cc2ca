"""DELETE and TRUNCATE, with and without subqueries, against the same rows in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.base.errors import ExpressionError, NotFoundError
from headwater.lake import modify
from headwater.lake.addressed import Addressed, Located
from headwater.lake.snapshot import Snapshot
from headwater.lakehouse import Lake
from headwater.query.engines.duckdb import DuckDBEngine
from headwater.query.session import Session
from headwater.query.statements.modify import has_subquery
from headwater.sql.fragment import Fragment

_ROWS = [{"id": i, "g": i % 3, "s": f"s{i}"} for i in range(12)]


def _ids(lake: Lake) -> list[int]:
    return sorted(r["id"] for r in lake.table("t").to_pylist(["id"]))


@pytest.fixture
def t(lake: Lake) -> hw.Table:
    for start in (0, 5):
        lake.write("t", _ROWS[start : start + (5 if start == 0 else 7)])
    lake.write("u", [{"id": 3, "g": 0}, {"id": 4, "g": 1}, {"id": None, "g": 2}])
    return lake.table("t")


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("id = 3", lambda r: r["id"] != 3),
        ("t.id >= 10 OR t.s = 's0'", lambda r: not (r["id"] >= 10 or r["s"] == "s0")),
        ("id IN (SELECT id FROM u)", lambda r: r["id"] not in (3, 4)),
        ("id IN (SELECT id FROM u WHERE id IS NOT NULL) AND g = 0", lambda r: r["id"] != 3),
        ("id NOT IN (SELECT id FROM u WHERE id IS NOT NULL)", lambda r: r["id"] in (3, 4)),
        ("id NOT IN (SELECT id FROM u)", lambda r: True),
        ("EXISTS (SELECT 1 FROM u WHERE u.id = t.id)", lambda r: r["id"] not in (3, 4)),
        ("NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.id = t.id)", lambda r: r["id"] in (3, 4)),
        ("id = (SELECT max(id) FROM t)", lambda r: r["id"] != 11),
        ("id > (SELECT avg(id) FROM t AS o WHERE o.g = t.g)", lambda r: r["id"] <= sum(range(r["g"], 12, 3)) / 4),
        ("id IN (SELECT id FROM t WHERE g = (SELECT min(g) FROM u))", lambda r: r["g"] != 0),
        ("id < (SELECT count(*) FROM t VERSION AS OF 0)", lambda r: r["id"] >= 5),
        ("(SELECT false)", lambda r: True),
    ],
)
def test_the_right_rows_go(lake: Lake, t: hw.Table, where: str, keeps: object) -> None:
    before = t.version
    done = lake.sql(f"DELETE FROM t WHERE {where}").to_pylist()
    kept = [r["id"] for r in _ROWS if keeps(r)]  # type: ignore[operator]
    assert _ids(lake) == kept
    assert done == [{"num_affected_rows": 12 - len(kept), "version": before + (len(kept) < 12)}]


def test_all_rows_and_none(lake: Lake, t: hw.Table) -> None:
    assert lake.sql("DELETE FROM t WHERE id = 99").to_pylist() == [{"num_affected_rows": 0, "version": 1}]
    assert lake.sql("DELETE FROM t WHERE id IN (SELECT 99)").to_pylist() == [{"num_affected_rows": 0, "version": 1}]
    assert lake.sql("TRUNCATE TABLE t").to_pylist() == [{"num_affected_rows": 12, "version": 2}]
    assert lake.sql("DELETE FROM t").to_pylist() == [{"num_affected_rows": 0, "version": 2}]


def test_an_alias_hides_the_name(lake: Lake, t: hw.Table) -> None:
    lake.sql("DELETE FROM t AS x WHERE x.id = 1")
    with pytest.raises(NotFoundError):
        lake.sql("DELETE FROM t AS x WHERE t.id = 2")
    assert len(_ids(lake)) == 11


def test_the_same_as_the_table_does(lake: Lake, t: hw.Table) -> None:
    lake.write("other", t.to_arrow())
    done = lake.table("other").delete("g = 1 AND s > 's4'")
    lake.sql("DELETE FROM t WHERE g = 1 AND s > 's4'")
    assert sorted(map(repr, t.to_pylist())) == sorted(map(repr, lake.table("other").to_pylist()))
    ours = t.history(1)[0]
    assert ours.operation == done.operation
    assert ours.metrics["numDeletedRows"] == done["numDeletedRows"]
    assert ours.parameters == lake.table("other").history(1)[0].parameters


def test_history_says_what_was_deleted(lake: Lake, t: hw.Table) -> None:
    lake.sql("DELETE FROM t WHERE s = :s OR id = :id", parameters={"s": "it's", "id": 1})
    assert t.history(1)[0].parameters == {"predicate": "s = 'it\\'s' OR id = 1"}
    lake.sql("DELETE FROM t WHERE id IN (SELECT id FROM u WHERE g = ?)", parameters=[0])
    assert t.history(1)[0].parameters == {"predicate": "id IN (SELECT id FROM u WHERE g = 0)"}


def test_the_change_feed_has_the_rows(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, n INT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    lake.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    lake.sql("DELETE FROM t WHERE id IN (SELECT max(id) FROM t)")
    assert lake.sql("SELECT id, _change_type FROM table_changes('t', 2)").to_tuples() == [(3, "delete")]


def test_a_lost_race_runs_the_query_again(lake: Lake, t: hw.Table) -> None:
    """Subqueries on the table itself see the snapshot that the attempt is about."""
    session = Session(lake, DuckDBEngine())
    query = Fragment("SELECT `__file`, `__position` FROM `__target` AS `t` WHERE id = (SELECT max(id) FROM t)")
    seen: list[int] = []

    def found(base: Snapshot) -> Located:
        target = Addressed(base)
        rows = session.rows(query, {"__target": target, "t": base}).read_all()
        if not seen:
            lake.table("t").append([{"id": 500, "g": 0, "s": "late"}])
        seen.append(base.version)
        return Located(rows, target.paths)

    done = modify.delete(t.storage, Fragment("id = (…)"), found=found)
    assert seen == [1, 2] and done.version == 3
    assert 500 not in _ids(lake) and 11 in _ids(lake)


def test_partitions_and_columns_of_other_names(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE t (`the id` INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    lake.sql("DELETE FROM t WHERE `the id` IN (SELECT max(`the id`) FROM t GROUP BY p HAVING p = 'a')")
    lake.sql("DELETE FROM t WHERE p IS NULL")
    assert lake.sql("SELECT * FROM t").to_tuples() == [(2, "b")]


def test_a_table_without_deletion_vectors(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    lake.sql("INSERT INTO t VALUES (1), (2), (3)")
    lake.sql("DELETE FROM t WHERE id = (SELECT min(id) FROM t)")
    lake.sql("DELETE FROM t WHERE id = (SELECT min(id) FROM t)")
    assert _ids(lake) == [3]


def test_errors_point_into_the_statement(lake: Lake, t: hw.Table) -> None:
    for text, word in (
        ("DELETE FROM t WHERE id IN (SELECT nosuch FROM u)", "nosuch"),
        ("DELETE FROM t WHERE id IN (SELECT id FROM nosuch)", "nosuch"),
        ("DELETE FROM t WHERE nosuch = 1", "nosuch"),
        ("DELETE FROM nosuch WHERE id = 1", "nosuch"),
    ):
        with pytest.raises(NotFoundError) as caught:
            lake.sql(text)
        assert caught.value.position == text.index(word), text
    with pytest.raises(ExpressionError):
        lake.sql("DELETE FROM t WHERE (SELECT max(id) FROM u)")
    assert t.version == 1


def test_what_is_a_subquery() -> None:
    assert has_subquery(Fragment("a = (select 1)")) and has_subquery(Fragment("a in ( /* x */ WITH y AS (…) …)"))
    assert not has_subquery(Fragment("a = 'x (select' AND `(select` = 1 AND f(selected)"))


_IDS = st.lists(st.integers(0, 8) | st.none(), max_size=8)


@pytest.mark.long
@given(ours=_IDS, theirs=_IDS, parts=st.integers(1, 3))
def test_any_rows(ours: list[int | None], theirs: list[int | None], parts: int) -> None:
    """IN, NOT IN and EXISTS with nulls on both sides, over several files with deletion vectors."""
    kind = pa.int64()
    conditions: dict[str, Callable[[int | None], bool]] = {
        "a IN (SELECT b FROM u)": lambda a: a is not None and a in theirs,
        "a NOT IN (SELECT b FROM u)": lambda a: (
            not theirs or (a is not None and None not in theirs and a not in theirs)
        ),
        "EXISTS (SELECT 1 FROM u WHERE b = a)": lambda a: a is not None and a in theirs,
        "NOT EXISTS (SELECT 1 FROM u WHERE b = a)": lambda a: a is None or a not in theirs,
        "a = (SELECT max(b) FROM u)": lambda a: (
            a is not None and a == max((x for x in theirs if x is not None), default=None)
        ),
    }
    with TemporaryDirectory() as folder:
        lake = hw.connect(Path(folder))
        lake.write("u", pa.table({"b": pa.array(theirs, kind)}))
        for condition, meant in conditions.items():
            lake.write("t", pa.table({"a": pa.array([], kind)}), mode="overwrite")
            for part in range(parts):
                lake.write("t", pa.table({"a": pa.array([*ours[part::parts], 77], kind)}))
            lake.sql("DELETE FROM t WHERE a = 77")
            lake.sql(f"DELETE FROM t WHERE {condition}")
            left = [r["a"] for r in lake.table("t").to_pylist()]
            assert sorted(left, key=repr) == sorted((a for a in ours if not meant(a)), key=repr), condition
