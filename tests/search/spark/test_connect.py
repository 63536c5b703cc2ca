"""The same through a Spark Connect session, which has no JVM in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.java_archive import java_options
from tests.spark_session.conftest import RunPython, free_port, run_python
from tests.waiting import listens, wait_until

__all__ = ["run_python"]

PROGRAM = """
import json, sys
import headwater as hw
from headwater.base import settings
from tests.search.spark.notes import notes
session = hw.spark(URL)
assert type(session).__module__ == "pyspark.sql.connect.session"
lake = hw.connect(ROOT, spark=session)
table = lake.write("notes", notes(300, seed=0))
table.append(notes(300, seed=1))
table.delete("id % 7 = 2")
ix = lake.index("ix", "notes", text="body", numeric="amount", target_rows=300)
with settings.override(search_spark_rows=1):
    ix.refresh()
assert ix.verify().equal and ix.details().splits == 2
found = ix.spark("refund", columns=["id", "_score"], filter="amount > 20")
print(found.count() == ix.count("refund", filter="amount > 20"))
path = ROOT + "/made"
frame = session.createDataFrame(notes(200, seed=3)).repartition(2)
frame.write.format("headwater").option("text", "body").mode("append").save(path)
print(lake.index("made_index").coverage, lake.index("made_index").verify().equal)
read = session.read.format("headwater").option("query", "refund").option("k", "5").schema("id long").load(path)
print([row.id for row in read.collect()] == [row["id"] for row in lake.index("made_index").search("refund", k=5)])
"""


@pytest.mark.spark
@pytest.mark.slow
def test_connect(run_python: RunPython, tmp_path: Path) -> None:
    import pyspark

    port = free_port()
    home = Path(pyspark.__file__).parent
    options = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    paths = os.pathsep.join(filter(None, sys.path))
    command = [str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in options.items():
        command += ["--conf", f"{name}={value}"]
    environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": java_options()}
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen([*command, "spark-internal"], env=environment, stdout=log, stderr=log, cwd=tmp_path)
    try:
        wait_until(lambda: server.poll() is not None or listens(port), (tmp_path / "server.log").read_text)
        assert server.poll() is None, (tmp_path / "server.log").read_text()
        program = PROGRAM.replace("URL", repr(f"sc://127.0.0.1:{port}")).replace("ROOT", repr(str(tmp_path / "lake")))
        said = run_python(program, PYTHONPATH=paths, HEADWATER_PROGRESS="off")
    finally:
        server.kill()
        server.wait()
    assert said.split("\n--\n")[0].splitlines() == ["True", "1.0 True", "True"], said
