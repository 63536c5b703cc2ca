"""A Spark Connect session: views are built and refreshed by tasks of a server in another process, without Java here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark_session.conftest import ONE_COMPILER, free_port, run_python, start_spark

if TYPE_CHECKING:
    from tests.spark_session.conftest import RunPython, StartSpark

__all__ = ["run_python", "start_spark"]

PROGRAM = """
import headwater as hw
session = hw.spark({url!r})
lake = hw.connect({lake!r}, spark=session)
orders = lake.write("orders", [{{"customer": i % 3, "amount": i}} for i in range(30)])
view = lake.view("spend", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
print("on Spark" in view.refresh(engine="spark").reason, view.verify().equal)
orders.delete("amount < 5")
print("on Spark" in view.refresh(engine="spark").reason, view.verify().equal)
orders.delete("amount < 9")
print(view.refresh(engine="local").mode, view.verify().equal)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_views_on_connect(start_spark: StartSpark, run_python: RunPython, tmp_path: Path) -> None:
    port = free_port()
    options = {
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": ONE_COMPILER,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    start_spark("org.apache.spark.deploy.SparkSubmit", *settings, "--class", server, "spark-internal", port=port)
    program = PROGRAM.format(url=f"sc://127.0.0.1:{port}", lake=str(tmp_path / "lake"))
    out = run_python(program, JAVA_HOME="/nowhere", PATH="/usr/bin:/bin")
    assert out.startswith("True True\nTrue True\nincremental True\n"), out
