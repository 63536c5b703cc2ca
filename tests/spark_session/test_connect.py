"""A Spark Connect server in another process, and `hw.spark("sc://…")`, which needs no Java here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .conftest import ONE_COMPILER, free_port

if TYPE_CHECKING:
    from .conftest import RunPython, StartSpark

PROGRAM = """
import headwater as hw
from headwater.spark.session import has_delta
session = hw.spark({url!r})
assert type(session).__module__ == "pyspark.sql.connect.session"
assert hw.spark() is session
print(session.range(10).filter("id > 6").toArrow().column("id").to_pylist())
print(session.conf.get("spark.sql.session.timeZone"), has_delta(session))
from headwater.spark.analyzer import analyzed
try:
    analyzed(session, "SELECT 1", {{}})
except hw.UnsupportedError as error:
    print(error.code, error.message)
"""


@pytest.mark.spark
def test_connect(start_spark: StartSpark, run_python: RunPython) -> None:
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
    start_spark("org.apache.spark.deploy.SparkSubmit", *settings, "--class", server, "spark-internal", port=port)
    out = run_python(PROGRAM.format(url=f"sc://127.0.0.1:{port}"), JAVA_HOME="/nowhere", PATH="/usr/bin:/bin")
    assert out.startswith("[7, 8, 9]\nUTC False\nE3003 Spark's analyzer cannot be asked over Spark Connect"), out


def test_nobody_listens(run_python: RunPython) -> None:
    program = """
import headwater as hw
try:
    hw.spark("sc://127.0.0.1:%d")
except hw.SetupError as error:
    print(error.code, error.message)
"""
    assert run_python(program % free_port()).startswith("E7003 Spark did not start: nobody listens at sc://127.0.0.1:")
