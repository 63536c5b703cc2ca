"""OPTIMIZE, VACUUM and RESTORE through SQL."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import headwater as hw
from headwater.base.errors import InputError, NotFoundError
from headwater.lakehouse import Lake


@pytest.fixture
def t(lake: Lake) -> hw.Table:
    lake.sql("CREATE TABLE t (p INT, n INT) PARTITIONED BY (p)")
    for i in range(4):
        lake.sql("INSERT INTO t VALUES (0, ?), (1, ?)", parameters=[i, -i])
    return lake.table("t")


def _rows(lake: Lake) -> list[tuple[object, ...]]:
    return sorted(lake.sql("SELECT * FROM t").to_tuples())


def test_optimize(lake: Lake, t: hw.Table) -> None:
    before = _rows(lake)
    (done,) = lake.sql("OPTIMIZE t WHERE p = :p ZORDER BY (n)", parameters={"p": 1}).to_pylist()
    assert (done["num_added_files"], done["num_removed_files"], done["version"]) == (1, 4, 5)
    assert done["path"] == t.location
    assert lake.sql("OPTIMIZE t").to_pylist()[0]["num_removed_files"] == 4
    assert len(t.snapshot.files) == 2 and _rows(lake) == before
    assert t.history(2)[1].parameters == {"predicate": "p = 1", "zOrderBy": ["n"]}
    with pytest.raises(InputError):
        lake.sql("OPTIMIZE t WHERE n = 1")
    with pytest.raises(NotFoundError) as caught:
        lake.sql("OPTIMIZE t ZORDER BY (n, nosuch)")
    assert caught.value.position == len("OPTIMIZE t ZORDER BY (n, ")


def test_vacuum(lake: Lake, t: hw.Table) -> None:
    lake.sql("OPTIMIZE t")
    for path in Path(t.location).rglob("*.parquet"):
        os.utime(path, (0, 0))
    assert lake.sql("VACUUM t DRY RUN").to_pylist() == []
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    listed = lake.sql("VACUUM t RETAIN 0 HOURS DRY RUN").to_pylist()
    assert len(listed) == 8 and all(Path(r["path"]).exists() for r in listed)
    (done,) = lake.sql("VACUUM t RETAIN 0 HOURS").to_pylist()
    assert done["num_deleted_files"] == 8 and not any(Path(r["path"]).exists() for r in listed)
    assert len(_rows(lake)) == 8


def test_a_short_retention_is_refused(lake: Lake, t: hw.Table) -> None:
    with pytest.raises(InputError) as caught:
        lake.sql("VACUUM t RETAIN 1.5 HOURS")
    assert caught.value.code == "E1010"


def test_restore(lake: Lake, t: hw.Table) -> None:
    at_two = sorted(lake.sql("SELECT * FROM t VERSION AS OF 2").to_tuples())
    lake.sql("DELETE FROM t")
    (done,) = lake.sql("RESTORE TABLE t TO VERSION AS OF ?", parameters=[2]).to_pylist()
    assert (done["version"], done["num_restored_files"], done["num_of_files_after_restore"]) == (6, 4, 4)
    assert done["table_size_after_restore"] == sum(f.size for f in t.snapshot.files.values())
    assert _rows(lake) == at_two
    moment = t.history()[-4].timestamp
    lake.sql("RESTORE t TO TIMESTAMP AS OF :at", parameters={"at": moment})
    assert _rows(lake) == sorted(lake.sql("SELECT * FROM t VERSION AS OF 3").to_tuples())
    with pytest.raises(NotFoundError):
        lake.sql("RESTORE t TO VERSION AS OF 99")
