"""TPC-H: its data, its queries and the answers that its specification gives at scale factor 1.

The rows are made by ``tpchgen-cli``, whose Parquet files are then written into a lake as Delta tables: ``lineitem`` in 12
files and ``orders`` in 4, the others in one. A folder that holds such a lake, or the Parquet files, is used as it is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw
from headwater.lakehouse import Lake

__all__ = ["FILES", "Answer", "answers", "open_lake", "queries"]

FILES = {
    "customer": 1,
    "lineitem": 12,
    "nation": 1,
    "orders": 4,
    "part": 1,
    "partsupp": 1,
    "region": 1,
    "supplier": 1,
}
_HERE = Path(__file__).parents[1]
_ORDERS = 1_500_000


def queries() -> dict[str, str]:
    """The 22 queries by name."""
    text = (_HERE / "tpch.sql").read_text()
    return dict(re.findall(r"^-- (q\d+)\n(.*?)\s*(?=^-- q|\Z)", text, re.DOTALL | re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Answer:
    """How many rows a query has at scale factor 1, and how its first one begins."""

    rows: int
    first: tuple[str, ...]

    def check(self, name: str, found: pa.Table) -> None:
        first = tuple(str(found.column(i)[0].as_py()) for i in range(len(self.first)))
        assert found.num_rows == self.rows, f"{name}: {found.num_rows} rows, and the specification has {self.rows}"
        assert first == self.first, f"{name}: the first row is {first}, and in the specification {self.first}"


def answers() -> dict[str, Answer]:
    """The known answers by query."""
    lines = (_HERE / "tpch_answers.txt").read_text().splitlines()
    split = [[c.strip() for c in line.split("|")] for line in lines if line and not line.startswith("#")]
    return {name: Answer(int(rows), tuple(first)) for name, rows, *first in split}


def open_lake(data: Path, scale: float) -> Lake:
    """The lake of TPC-H's tables at ``data``, made there if it is not."""
    data.mkdir(parents=True, exist_ok=True)
    if (data / "lineitem" / "_delta_log").is_dir():
        lake = hw.connect(data)
    else:
        missing = [n for n in FILES if not (data / f"{n}.parquet").is_file()]
        if missing:
            _generate(data, scale)
        lake = hw.connect(data / "lake")
        for name in FILES:
            if name not in lake:
                _write(lake, name, data / f"{name}.parquet")
    found = lake.table("orders").count()
    if found != round(_ORDERS * scale):
        sys.exit(f"error: {data} holds TPC-H of scale {found / _ORDERS:g}\n  hint: give --scale {found / _ORDERS:g}")
    return lake


def _generate(folder: Path, scale: float) -> None:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    command = shutil.which("tpchgen-cli") or (str(beside) if beside.is_file() else None)
    if command is None:
        sys.exit("error: tpchgen-cli, which makes TPC-H's data, is not here\n  hint: pip install tpchgen-cli")
    done = subprocess.run(
        [command, "parquet", "-s", f"{scale:g}", "--output-dir", str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"error: tpchgen-cli failed: {(done.stderr or done.stdout).strip()}")


def _write(lake: Lake, name: str, path: Path) -> None:
    """The rows of a Parquet file as a table, in as many commits of one file each as `FILES` says."""
    with pq.ParquetFile(path) as file:
        per_file = -(-file.metadata.num_rows // FILES[name])
        batches = (b for b in file.iter_batches())
        for part in _parts(batches, per_file):
            lake.write(name, part)


def _parts(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows)
            held = table.slice(rows).to_batches()
            count -= rows
    if count:
        yield pa.Table.from_batches(held)
