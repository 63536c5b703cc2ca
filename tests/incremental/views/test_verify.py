"""Verifying a view: in bounded memory, and what is wrong is found wherever it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import headwater as hw
from headwater.lake import write

ROWS = 3_000_000
MOST_BYTES = 400_000_000
"""What verifying may add to a process. Both sides whole are 600 MB of Arrow and 850 MB of memory."""

QUERIES = {
    "projection": "SELECT id, name, price * 2 AS p, amount FROM s WHERE id >= 0",
    "group": "SELECT id % 1500000 AS k, sum(price) AS p, sum(amount) AS a, count(*) AS n FROM s GROUP BY id % 1500000",
}

VERIFY = """
import json, re, sys
import headwater as hw
from headwater.base import settings

def size(what):
    return int(re.search(rf"^{what}:\\s+(\\d+) kB", open("/proc/self/status").read(), re.M)[1]) * 1024

settings.override(progress="off").__enter__()
view = hw.connect(sys.argv[1]).view(sys.argv[2])
small = hw.connect(sys.argv[1]).view("small").verify()  # loads the engine and the machine code
assert small.equal
before = size("VmHWM")
found = view.verify()
print(json.dumps({**found.as_dict(), "added": size("VmHWM") - before}))
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> hw.Lake:
    made = hw.connect(tmp_path_factory.mktemp("verify"))
    with duckdb.connect() as con:
        rows = con.sql(
            "SELECT i AS id, 'name ' || (hash(i) % 1000) AS name, (hash(i) % 100000) / 7.0 AS price, "
            f"(hash(i + 3) % 100000)::DECIMAL(18, 2) AS amount FROM range({ROWS}) t(i)"
        )
        made.write("s", rows.to_arrow_reader(100_000))
    made.view("small", "SELECT id, name, price, amount FROM s WHERE id < 10", policy="full").refresh()
    return made


def verified(lake: hw.Lake, name: str) -> dict[str, object]:
    command = [sys.executable, "-c", VERIFY, str(lake.location), name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", ["group", pytest.param("projection", marks=pytest.mark.slow)])
def test_memory_is_bounded(name: str, lake: hw.Lake) -> None:
    """A projection without wrong rows takes less than the one below, which runs every day."""
    lake.view(name, QUERIES[name], policy="full").refresh()
    found = verified(lake, name)
    assert found["equal"] and found["rows"] == lake.table(name).count()
    assert found["partitions"] in (128, 256)
    added = found["added"]
    assert isinstance(added, int) and added < MOST_BYTES, f"{added:,} bytes"


@pytest.mark.long
def test_memory_is_bounded_where_rows_differ(lake: hw.Lake) -> None:
    """A view of all rows, of which half are wrong: they are compared with the help of files."""
    view = lake.view("half", "SELECT id, name, amount FROM s WHERE id % 2 = 0", policy="full")
    view.refresh()
    others = lake.sql("SELECT id + 1 AS id, name, amount FROM half WHERE id % 4 = 0")
    write.append(view.table.storage, others.to_arrow())
    found = verified(lake, "half")
    assert (found["equal"], found["missing_rows"], found["extra_rows"]) == (False, 0, ROWS // 4)
    added = found["added"]
    assert isinstance(added, int) and added < MOST_BYTES, f"{added:,} bytes"


def test_a_row_too_many_and_a_row_too_few_are_found(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"id": i, "x": i / 7} for i in range(50_000)])
    view = lake.view("v", "SELECT id, x FROM t")
    view.refresh()
    assert view.verify().equal
    write.append(view.table.storage, view.to_arrow().slice(7, 1))
    found = view.verify()
    assert (found.missing_rows, found.extra_rows) == (0, 1) and found.rows == 50_001
    assert (found.partitions, found.exact_partitions) == (4, 1)
    assert (
        str(found)
        == "differs at t@0: 0 missing, 1 too many (50,001 rows in 4 partitions, 1 of them compared row by row)"
    )


@pytest.mark.long
def test_spilled_rows_go_to_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's own choice would be a folder in the current one."""
    lake = hw.connect(tmp_path / "lake")
    lake.write("t", [{"id": 1}])
    monkeypatch.chdir(tmp_path)
    wanted = (
        "SELECT i % 1000000 AS k, count(*) AS n, max(i) AS m FROM range(2000000) t(i) GROUP BY 1 ORDER BY 2, 1 DESC"
    )
    with hw.settings.override(memory_limit_bytes="40 MiB", threads=1):
        assert lake.sql(wanted, dialect="native").to_arrow().num_rows == 1_000_000
    assert not (tmp_path / ".tmp").exists()
