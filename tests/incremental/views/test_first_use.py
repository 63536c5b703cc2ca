"""First use: what is compiled once on a machine is not part of what a view costs, and what a query took is known to the next process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.views import live as lives
from headwater.kernels.compile_time import compiling

_WITHOUT_KERNELS = """
import sys
import headwater as hw
lake = hw.connect(sys.argv[1])
lake.write("orders", [{"id": i, "amount": i % 7} for i in range(1000)])
lake.view("v", "SELECT amount, count(*) AS n FROM orders GROUP BY amount", policy="full").refresh()
assert sum(lake.table("v").to_arrow()["n"].to_pylist()) == 1000
from headwater.kernels.compiled import kernels
print([name for name, kernel in kernels.items() if kernel.overloads])
"""


def _slow(seconds: float) -> int:
    with compiling():
        time.sleep(seconds)
    return 1


def test_compiling_is_not_a_part_of_what_a_view_costs(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", pa.table({"x": list(range(2000))}))
    lake.function("slow", _slow, arguments=["double"], returns="int")
    view = lake.view("v", "SELECT x, slow(CASE WHEN x = 0 THEN 0.5D ELSE 0D END) AS y FROM t")
    took_s = view.refresh().seconds
    assert took_s > 0.5
    assert view.plan().full_seconds < took_s - 0.45, "half a second of it was compiling"


@pytest.mark.long
def test_what_a_query_took_is_known_to_the_next_process(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", pa.table({"x": list(range(200_000))}))
    view = lake.view("v", "SELECT x % 100 AS k, count(*) AS n FROM t GROUP BY x % 100")
    view.refresh()
    guessed = view.plan().query_seconds
    assert view.verify().equal
    measured = view.plan().query_seconds
    assert measured != guessed
    lives.forget(lake.catalog.root, "v")  # as another process has it
    assert lake.view("v").plan().query_seconds == pytest.approx(measured, rel=1e-3)
    lives.forget(lake.catalog.root, "v")
    lake.table("t").append(pa.table({"x": [1]}))
    lake.view("v").refresh()
    (tmp_path / "_headwater/views/v/query_time.json").unlink()
    lives.forget(lake.catalog.root, "v")
    assert lake.view("v").plan().query_seconds == pytest.approx(measured, rel=1e-2), "a commit has it now"


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 9}'])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damage: bytes) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", pa.table({"x": [1]}))
    view = lake.view("v", "SELECT x FROM t")
    view.refresh()
    (tmp_path / "_headwater/views/v/query_time.json").write_bytes(damage)
    lives.forget(lake.catalog.root, "v")
    assert lake.view("v").plan().mode == "noop"


@pytest.mark.long
def test_the_first_rows_of_a_query_need_no_kernel(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT_KERNELS, str(tmp_path / "lake")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert run.stdout == "[]\n" and "compiling" not in run.stderr
