"""Without an optional package, every call that needs it says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headwater.base.errors import SetupError
from headwater.spark.failures import told

# Run in a process of its own, in which the packages named first cannot be imported.
_PROGRAM = """
import importlib.abc, sys, tempfile
from datetime import datetime

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import pyarrow as pa
import headwater as hw
from headwater.base.errors import SetupError

lake = hw.connect(tempfile.mkdtemp())
moments = pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2)], pa.timestamp("us", "UTC"))
lake.write("t", pa.table({"id": [1, 2], "k": ["a", "b"], "ts": moments}))
table = lake.table("t")
stream = lambda: lake.stream("t", time="ts", by="k")
calls = {
    "pyspark": [
        lambda: hw.spark(),
        lambda: lake.spark,
        lambda: lake.sql("SELECT 1", engine="spark").to_arrow(),
        lambda: lake.sql("INSERT INTO t SELECT * FROM t", engine="spark"),
        lambda: stream().collect(),
        lambda: stream().write("z"),
    ],
    "pandas": [lambda: table.to_pandas(), lambda: lake.sql("SELECT 1").to_pandas(),
               lambda: table.changes(after=-1).to_pandas(), lambda: stream().to_pandas()],
    "polars": [lambda: table.to_polars(), lambda: lake.sql("SELECT 1").to_polars(),
               lambda: table.changes(after=-1).to_polars(), lambda: stream().to_polars()],
    "datafusion": [lambda: lake.sql("SELECT 1", engine="datafusion").to_arrow()],
}[sys.argv[1]]
for number, call in enumerate(calls):
    try:
        call()
        print(number, "no error")
    except SetupError as error:
        print("ok" if error.code == "E7002" and "pip install" in error.hint and sys.argv[1] in str(error) else error)
    except Exception as error:
        print(number, type(error).__name__, error)
"""


@pytest.mark.long
@pytest.mark.parametrize(("package", "calls"), [("pyspark", 6), ("pandas", 4), ("polars", 4), ("datafusion", 1)])
def test_a_missing_package_is_named_with_what_to_install(package: str, calls: int) -> None:
    command = [sys.executable, "-c", _PROGRAM, package]
    made = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert made.stdout.split("\n")[:-1] == ["ok"] * calls, made.stdout + made.stderr[-2000:]


class _PySparkLike(Exception):
    """As Spark hands over the trace of a task."""


_PySparkLike.__module__ = "pyspark.errors.exceptions.captured"


@pytest.mark.parametrize("package", ["headwater", "numba", "pyarrow"])
def test_a_cluster_without_the_package_is_a_sentence(package: str) -> None:
    trace = f"Job aborted\n  File \"serializers.py\"\nModuleNotFoundError: No module named '{package}'\n\tat org.apache"
    with pytest.raises(SetupError) as caught, told():
        raise _PySparkLike(trace)
    assert caught.value.code == "E7007"
    assert f"`{package}`" in caught.value.message
    assert "PYSPARK_PYTHON" in (caught.value.hint or "")


def test_modules_of_the_users_own_stay_what_they_are() -> None:
    with pytest.raises(_PySparkLike), told():
        raise _PySparkLike("ModuleNotFoundError: No module named 'my_models'")


def test_several_packages_are_named_at_once() -> None:
    assert SetupError.executors_lack("numba", "polars").message.endswith("cannot import `numba`, `polars`")


def test_another_python_on_the_cluster_is_a_sentence() -> None:
    said = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: 3.11, PySpark cannot"
    with pytest.raises(SetupError) as caught, told():
        raise _PySparkLike(
            f"Job aborted\npyspark.errors.exceptions.base.PySparkRuntimeError: {said} run\n\tat org.apache"
        )
    assert caught.value.code == "E7010"
    assert "run Python 3.10, and this process Python 3.11" in caught.value.message
    assert "PYSPARK_PYTHON" in (caught.value.hint or "")
