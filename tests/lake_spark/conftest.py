"""What these tests share: a lake whose session is the shared one, and the comparison that all of them make."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.lake.table import Table
from headwater.lakehouse import Lake

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

RunPython = Callable[..., str]


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    with hw.settings.override(fsync=False):
        yield hw.connect(tmp_path / "lake", spark=spark)


def difference(frame: DataFrame, rows: pa.Table) -> ChangeBatch:
    """What turns ``rows`` into the frame's rows."""
    return ChangeBatch.diff(rows, frame.toArrow().cast(rows.schema))


def agree(table: Table) -> int:
    """Spark and Arrow read the same rows; how many."""
    rows = table.to_arrow()
    frame = table.spark()
    assert frame.columns == rows.schema.names
    assert difference(frame, rows).is_empty
    return int(rows.num_rows)


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run a program in a process of its own, because a process can have only one kind of Spark session."""

    def run(program: str, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
