"""Workers without Headwater are given it; what cannot be shipped is named. On a standalone cluster and over Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.java_archive import java_options

import headwater
from headwater.spark.probe import digest_of
from headwater.spark.shipping import package_zip

from .conftest import ONE_COMPILER, free_port

if TYPE_CHECKING:
    from .conftest import RunPython, StartSpark

# What a stream answers, and where its tasks have the package from.
_STREAM = """
import os, tempfile
import pyarrow as pa
import headwater as hw
from headwater.spark.shipping import with_package

def origins(batches):
    import headwater, headwater.kernels.code_cache as code
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [headwater.__file__], "folder": [code.__file__]})

def answer(session):
    with tempfile.TemporaryDirectory() as folder:
        lake = hw.connect(folder, spark=session)
        for name, column in (("trades", "size"), ("quotes", "bid")):
            rows = {"symbol": ["a", "b"] * 500, "ts": list(range(1000)), "n": list(range(1000)), column: [0.5] * 1000}
            lake.write(name, pa.table(rows))
        trades = lake.stream("trades", time="ts", by="symbol", tiebreak="n")
        quotes = lake.stream("quotes", time="ts", by="symbol", tiebreak="n").select("symbol", "ts", "n", "bid")
        found = trades.join_asof(quotes).collect()
        read = lake.table("trades").spark(session).count()
    files = {row.file for row in session.range(2).mapInArrow(origins, "file string, folder string").collect()}
    shipped = all("headwater-" in file and ".zip.d/package/headwater/" in file for file in files)
    return found.num_rows, found.column("bid").null_count, read, "shipped" if shipped else "installed"
"""

_CLUSTER = (
    _STREAM
    + """
config = {"spark.executor.memory": "512m", "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1",
          "spark.driver.extraJavaOptions": os.environ["DRIVER"], "spark.executor.extraJavaOptions": os.environ["EXECUTOR"]}
for python in os.environ["PYTHONS"].split(os.pathsep):
    os.environ["PYSPARK_PYTHON"] = python
    session = hw.spark(os.environ["URL"], config=config)
    try:
        print(*answer(session))
    except hw.SetupError as error:
        print(error.code, error.message)
    session.stop()
"""
)

_CONNECT = _STREAM + "print(*answer(hw.spark(os.environ['URL'])))\n"


def _python(folder: Path, *, without: tuple[str, ...] = (), beside: str | None = None) -> str:
    """A Python with everything that is installed here, except Headwater and these packages; ``beside`` is another Headwater's source."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        name = entry.name.lower()
        if "headwater" in name or name.endswith(".pth") or name.split(".")[0].split("-")[0] in without:
            continue
        (packages / entry.name).symlink_to(entry)
    if beside is not None:
        (packages / "headwater").mkdir()
        (packages / "headwater" / "__init__.py").write_text(beside)
    return str(python)


def _found(python: str, package: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run([python, "-c", code], env=environment, check=False).returncode == 0


def test_the_zip_is_named_by_what_is_in_it(tmp_path: Path) -> None:
    path = package_zip()
    assert path is not None
    assert path is package_zip()  # zipped once in a process
    package = Path(headwater.__file__).parent
    assert path.name == f"headwater-{digest_of(str(package))}.zip"
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path)
    assert digest_of(str(tmp_path / "package" / "headwater")) == digest_of(str(package))
    (tmp_path / "package" / "headwater" / "errors.py").write_text("# one file more\n")
    assert digest_of(str(tmp_path / "package" / "headwater")) != digest_of(str(package))


# Each Python is an application with executors of its own. The server of Spark Connect, below, has a Python without the package every day.
@pytest.mark.spark
@pytest.mark.parametrize(
    "chosen", [("old", "poor"), pytest.param(("bare", "old", "poor"), marks=pytest.mark.slow)], ids="-".join
)
def test_a_cluster_without_the_package(
    start_spark: StartSpark, run_python: RunPython, tmp_path: Path, chosen: tuple[str, ...]
) -> None:
    bare = _python(tmp_path / "bare")
    old = _python(tmp_path / "old", beside="__version__ = '0.0.1'\n")
    poor = _python(tmp_path / "poor", without=("polars", "pyroaring"))
    assert not _found(bare, "headwater")
    assert _found(bare, "numba")
    assert _found(old, "headwater")
    assert not _found(poor, "polars")
    port, pages, worker, worker_pages = (str(free_port()) for _ in range(4))
    url, deploy = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    start_spark(f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", pages, port=int(port))
    start_spark(
        *(f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--port", worker, "--webui-port", worker_pages),
        *("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"), url),
        port=int(worker),
        python=bare,
    )
    pythons = os.pathsep.join({"bare": bare, "old": old, "poor": poor}[name] for name in chosen)
    options = {"DRIVER": ONE_COMPILER, "EXECUTOR": java_options(), "PYTHONS": pythons, "URL": url}
    out = run_python(_CLUSTER, HEADWATER_PROGRESS="off", PYTHONPATH=os.pathsep.join(filter(None, sys.path)), **options)
    lacking = "E7007 the tasks of the Spark cluster cannot import `polars`, `pyroaring`"
    shipped = ["1000 0 1000 shipped"] * (len(chosen) - 1)
    assert out.splitlines()[: len(chosen)] == [*shipped, lacking], out


@pytest.mark.spark
def test_a_connect_server_without_the_package(start_spark: StartSpark, run_python: RunPython, tmp_path: Path) -> None:
    port = free_port()
    options = {
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": ONE_COMPILER,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    start_spark(
        *("org.apache.spark.deploy.SparkSubmit", *settings, "--class", server, "spark-internal"),
        port=port,
        python=_python(tmp_path / "bare"),
    )
    out = run_python(_CONNECT, HEADWATER_PROGRESS="off", URL=f"sc://127.0.0.1:{port}")
    assert out.startswith("1000 0 1000 shipped\n"), out
