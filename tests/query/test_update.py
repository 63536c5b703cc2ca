"""UPDATE, with and without subqueries, against the same rows in Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.base.errors import ConstraintError, ExpressionError, NotFoundError, SchemaError
from headwater.lakehouse import Lake

_ROWS = [{"id": i, "n": i * 10, "s": f"s{i}"} for i in range(8)]


@pytest.fixture
def t(lake: Lake) -> hw.Table:
    lake.write("t", _ROWS[:3])
    lake.write("t", _ROWS[3:])
    lake.write("u", [{"id": 1, "x": 100}, {"id": 5, "x": 500}, {"id": 9, "x": None}])
    return lake.table("t")


def _rows(lake: Lake) -> list[dict[str, object]]:
    return sorted(lake.table("t").to_pylist(), key=lambda r: str(r["id"]).zfill(9))


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("SET n = n + 1", lambda r: {"n": r["n"] + 1}),
        (
            "SET n = id, s = concat(s, '!') WHERE t.id < 3",
            lambda r: {"n": r["id"], "s": r["s"] + "!"} if r["id"] < 3 else {},
        ),
        ("AS x SET x.n = x.id WHERE x.id = 1", lambda r: {"n": 1} if r["id"] == 1 else {}),
        ("SET id = n, n = id WHERE id = 2", lambda r: {"id": 20, "n": 2} if r["id"] == 2 else {}),
        ("SET n = NULL WHERE s = 's4'", lambda r: {"n": None} if r["s"] == "s4" else {}),
        ("SET n = 0 WHERE id IN (SELECT id FROM u)", lambda r: {"n": 0} if r["id"] in (1, 5) else {}),
        ("SET n = (SELECT max(x) FROM u)", lambda r: {"n": 500}),
        (
            "SET n = (SELECT x FROM u WHERE u.id = t.id), s = upper(s) WHERE id >= 4",
            lambda r: {"n": 500 if r["id"] == 5 else None, "s": r["s"].upper()} if r["id"] >= 4 else {},
        ),
        (
            "SET n = coalesce((SELECT sum(n) FROM t), 0) WHERE id = (SELECT min(id) FROM t)",
            lambda r: {"n": 280} if r["id"] == 0 else {},
        ),
    ],
)
def test_the_right_values(lake: Lake, t: hw.Table, text: str, change: object) -> None:
    done = lake.sql(f"UPDATE t {text}").to_pylist()
    changes = [change(r) for r in _ROWS]  # type: ignore[operator]
    expected = sorted(({**r, **c} for r, c in zip(_ROWS, changes, strict=True)), key=lambda r: str(r["id"]).zfill(9))
    assert _rows(lake) == expected
    assert done == [{"num_affected_rows": sum(bool(c) for c in changes), "version": 2}]


def test_nothing_to_update(lake: Lake, t: hw.Table) -> None:
    for where in ("id = 99", "id IN (SELECT 99)"):
        assert lake.sql(f"UPDATE t SET n = 0 WHERE {where}").to_pylist() == [{"num_affected_rows": 0, "version": 1}]


def test_the_same_as_the_table_does(lake: Lake, t: hw.Table) -> None:
    lake.write("other", t.to_arrow())
    lake.table("other").update({"n": "n * 2", "s": "'it''s'"}, where="id > 3")
    lake.sql("UPDATE t SET n = n * ?, s = ? WHERE id > ?", parameters=[2, "it's", 3])
    assert _rows(lake) == sorted(lake.table("other").to_pylist(), key=lambda r: str(r["id"]).zfill(9))
    assert t.history(1)[0].parameters == lake.table("other").history(1)[0].parameters == {"predicate": "id > 3"}


def test_values_must_fit(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id TINYINT NOT NULL, g INT GENERATED ALWAYS AS (id * 2), CONSTRAINT c CHECK (id < 100))")
    lake.sql("INSERT INTO t (id) VALUES (1)")
    for value in ("200", "(SELECT 200)"):
        with pytest.raises(SchemaError):
            lake.sql(f"UPDATE t SET id = {value}")
    for value in ("NULL", "100", "(SELECT 100)"):
        with pytest.raises(ConstraintError):
            lake.sql(f"UPDATE t SET id = {value}")
    with pytest.raises(SchemaError):
        lake.sql("UPDATE t SET id = 'a'")
    for value in ("3", "(SELECT 3)"):
        with pytest.raises(ExpressionError):
            lake.sql(f"UPDATE t SET g = {value}")
    lake.sql("UPDATE t SET id = (SELECT 5)")
    assert lake.table("t").to_pylist() == [{"id": 5, "g": 10}]


def test_errors_point_into_the_statement(lake: Lake, t: hw.Table) -> None:
    for text, word in (
        ("UPDATE t SET nosuch = 1", "nosuch"),
        ("UPDATE t SET n = nosuch", "nosuch"),
        ("UPDATE t SET n = 1, s = (SELECT nosuch FROM u) WHERE id = 1", "nosuch"),
        ("UPDATE t SET n = (SELECT 1) WHERE nosuch = 1", "nosuch"),
    ):
        with pytest.raises(NotFoundError) as caught:
            lake.sql(text)
        assert caught.value.position == text.index(word), text


def test_a_scalar_subquery_of_many_rows_fails(lake: Lake, t: hw.Table) -> None:
    with pytest.raises(ExpressionError):
        lake.sql("UPDATE t SET n = (SELECT x FROM u)")
    assert t.version == 1


def test_the_change_feed_pairs_rows(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, n INT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    lake.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    lake.sql("UPDATE t SET n = (SELECT sum(n) FROM t) WHERE id > 1")
    found = lake.sql("SELECT id, n, _change_type FROM table_changes('t', 2) ORDER BY id, _change_type").to_tuples()
    assert found == [
        (2, 6, "update_postimage"),
        (2, 2, "update_preimage"),
        (3, 6, "update_postimage"),
        (3, 3, "update_preimage"),
    ]


@pytest.mark.long
def test_updates_at_the_same_time_are_one_after_the_other(lake: Lake) -> None:
    """Each reads what the one before it has written, in its subquery too."""
    lake.sql("CREATE TABLE t (id INT, n INT); INSERT INTO t VALUES (1, 0), (2, 0)")

    def work(_: int) -> None:
        for _ in range(3):
            lake.sql("UPDATE t SET n = n + 1 WHERE id = 1")
            lake.sql("UPDATE t SET n = (SELECT max(n) + 1 FROM t WHERE id = 2) WHERE id = 2")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert _rows(lake) == [{"id": 1, "n": 12}, {"id": 2, "n": 12}]


@pytest.mark.long
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9) | st.none()), min_size=1, max_size=10),
    parts=st.integers(1, 3),
)
def test_any_rows(rows: list[tuple[int, int | None]], parts: int) -> None:
    """Each row gets its own value, whichever file it lies in and whatever was deleted before it."""
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("p", pa.int64())])
    with TemporaryDirectory() as folder:
        lake = hw.connect(Path(folder))
        for part in range(parts):
            mine = [*rows[part::parts], (99, 0)]
            data = [{"k": k, "v": v, "p": k % 2} for k, v in mine]
            lake.write("t", pa.Table.from_pylist(data, schema), partition_by=["p"])
        lake.sql("DELETE FROM t WHERE k = 99")
        lake.sql("UPDATE t SET v = (SELECT count(*) FROM t AS o WHERE o.k = t.k), p = k WHERE v IS NULL OR v >= 0")
        counts = {k: sum(1 for o, _ in rows if o == k) for k, _ in rows}
        expected = [(k, counts[k] if v is None or v >= 0 else v) for k, v in rows]
        assert sorted(lake.sql("SELECT k, v FROM t").to_tuples()) == sorted(expected)
