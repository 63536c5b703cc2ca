"""``table_changes``: what each version did, as the change data feed of Delta tells it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError, NotFoundError
from headwater.lakehouse import Lake

_ON = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


@pytest.fixture
def t(lake: Lake) -> hw.Table:
    lake.sql(f"CREATE TABLE t (id INT, n INT) {_ON}")
    lake.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    lake.sql("UPDATE t SET n = n + 1 WHERE id = 1")
    lake.sql("DELETE FROM t WHERE id = 2")
    lake.sql(
        "MERGE INTO t USING (SELECT 3 AS id, 33 AS n UNION ALL SELECT 4, 44) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    lake.sql("OPTIMIZE t")
    lake.sql("INSERT OVERWRITE t VALUES (9, 90)")
    return lake.table("t")


_EXPECTED = [
    (1, 10, "insert", 1),
    (2, 20, "insert", 1),
    (3, 30, "insert", 1),
    (1, 11, "update_postimage", 2),
    (1, 10, "update_preimage", 2),
    (2, 20, "delete", 3),
    (4, 44, "insert", 4),
    (3, 33, "update_postimage", 4),
    (3, 30, "update_preimage", 4),
    (1, 11, "delete", 6),
    (3, 33, "delete", 6),
    (4, 44, "delete", 6),
    (9, 90, "insert", 6),
]


def _changes(lake: Lake, arguments: str, where: str = "true") -> list[tuple[object, ...]]:
    return lake.sql(
        f"SELECT id, n, _change_type, _commit_version FROM table_changes({arguments}) WHERE {where} "
        "ORDER BY _commit_version, _change_type, id"
    ).to_tuples()


def test_every_kind_of_change(lake: Lake, t: hw.Table) -> None:
    assert _changes(lake, "'t', 0") == _EXPECTED
    assert _changes(lake, "'t', 2, 3") == [r for r in _EXPECTED if r[3] in (2, 3)]
    assert _changes(lake, "'t', 5, 5") == []


@pytest.mark.interop
def test_another_implementation_of_delta_reads_the_same(lake: Lake, t: hw.Table) -> None:
    deltalake = pytest.importorskip("deltalake")
    theirs = pa.table(deltalake.DeltaTable(t.location).load_cdf(0).read_all()).to_pylist()
    names = ("id", "n", "_change_type", "_commit_version")
    assert sorted(tuple(r[n] for n in names) for r in theirs) == sorted(_EXPECTED)


def test_columns(lake: Lake, t: hw.Table) -> None:
    found = lake.sql("SELECT * FROM table_changes('t', 6) AS c WHERE c.id = 9").to_pylist()
    (row,) = found
    assert list(row) == ["id", "n", "_change_type", "_commit_version", "_commit_timestamp"]
    assert row["_commit_timestamp"] == t.history(1)[0].timestamp
    assert lake.sql("SELECT count(*) FROM table_changes('t', 0)").scalar() == len(_EXPECTED)


def test_conditions_on_versions_are_used(lake: Lake, t: hw.Table) -> None:
    assert _changes(lake, "'t', 0", "_commit_version > 3 AND id = 4") == [(4, 44, "insert", 4), (4, 44, "delete", 6)]
    assert _changes(lake, "'t', 0", "_commit_version = 2 AND _change_type = 'update_preimage'") == [_EXPECTED[4]]


def test_times(lake: Lake, t: hw.Table) -> None:
    times = {e.version: e.timestamp for e in t.history()}
    asked = {"a": times[2], "b": times[3]}
    found = lake.sql("SELECT DISTINCT _commit_version FROM table_changes('t', :a, :b)", parameters=asked).to_tuples()
    assert sorted(found) == [(2,), (3,)]
    text = (times[6] - timedelta(milliseconds=1)).isoformat()
    assert {r[3] for r in _changes(lake, f"'t', '{text}'")} == {6}
    with pytest.raises(NotFoundError):
        _changes(lake, f"'t', '{datetime(2999, 1, 1, tzinfo=UTC).isoformat()}'")


def test_joined_with_its_table(lake: Lake, t: hw.Table) -> None:
    found = lake.sql(
        "SELECT c.id, t.n FROM table_changes('t', 1, 1) AS c LEFT JOIN t VERSION AS OF 3 ON t.id = c.id ORDER BY c.id"
    ).to_tuples()
    assert found == [(1, 11), (2, None), (3, 30)]


@pytest.mark.parametrize(
    "arguments", ["'t', 7", "'t', 0, 7", "'t', 3, 2", "'t', -1", "'t'", "'t', 'yesterday'", "'nosuch', 0"]
)
def test_intervals_that_are_not_there(lake: Lake, t: hw.Table, arguments: str) -> None:
    with pytest.raises(HeadwaterError):
        _changes(lake, arguments)


def test_without_a_feed_it_is_refused_as_delta_does(lake: Lake) -> None:
    lake.sql("CREATE TABLE u (id INT, n INT); INSERT INTO u VALUES (1, 1)")
    lake.sql("ALTER TABLE u SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true'); INSERT INTO u VALUES (2, 2)")
    with pytest.raises(InputError) as caught:
        _changes(lake, "'u', 0")
    assert caught.value.code == "E1020"
    assert _changes(lake, "'u', 2") == [(2, 2, "insert", 3)]


def test_a_column_that_came_later_is_null_before(lake: Lake) -> None:
    lake.sql(f"CREATE TABLE u (id INT) PARTITIONED BY (id) {_ON}".replace("(id INT)", "(id INT, x INT)"))
    lake.sql("INSERT INTO u VALUES (1, 1); ALTER TABLE u ADD COLUMN n INT; UPDATE u SET n = 5")
    assert _changes(lake, "'u', 1") == [
        (1, None, "insert", 1),
        (1, 5, "update_postimage", 3),
        (1, None, "update_preimage", 3),
    ]


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("INSERT INTO t VALUES (?, ?)"), st.tuples(st.integers(0, 4), st.integers(0, 3))),
        st.tuples(st.just("UPDATE t SET n = n + 1 WHERE id = ?"), st.tuples(st.integers(0, 4))),
        st.tuples(st.just("DELETE FROM t WHERE id = ?"), st.tuples(st.integers(0, 4))),
        st.tuples(st.just("DELETE FROM t WHERE id = (SELECT max(id) FROM t)"), st.just(())),
        st.tuples(st.just("OPTIMIZE t"), st.just(())),
    ),
    max_size=6,
)


@pytest.mark.long
@given(_STEPS)
def test_the_feed_adds_up_to_the_table(steps: list[tuple[str, tuple[int, ...]]]) -> None:
    """Rows that came less rows that went are the rows that are there, at every version."""
    with TemporaryDirectory() as folder:
        lake = hw.connect(Path(folder))
        lake.sql(f"CREATE TABLE t (id INT, n INT) {_ON}")
        for text, parameters in steps:
            lake.sql(text, parameters=list(parameters) or None)
        total: Counter[tuple[object, ...]] = Counter()
        by_version: dict[int, list[tuple[object, ...]]] = {}
        for *row, kind, version in _changes(lake, "'t', 0"):
            by_version.setdefault(int(str(version)), []).append((*row, kind))
        for version in range(lake.table("t").version + 1):
            for *row, kind in by_version.get(version, ()):
                total[tuple(row)] += 1 if kind in ("insert", "update_postimage") else -1
            then = Counter(lake.sql(f"SELECT * FROM t VERSION AS OF {version}").to_tuples())
            assert +total == then and not -total
