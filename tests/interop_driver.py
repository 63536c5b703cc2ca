"""A Spark session with delta-spark's own classes, in a process of its own, told what to do on stdin.

A process has one JVM, and the classes of a session are fixed when it starts, so this session cannot share a process
with another, and all tests of a worker share it. One JSON object a line goes in, ``{"sql": …, "out": file or null}``; one comes out,
``{"ok": true}`` or ``{"error": …}``. The result of a query is written to ``out`` as an Arrow file. ``{"program": …, "arguments": […]}`` runs
Python beside the session instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.prompt_replies import acknowledge_at_once


class Driver:
    """The other end: starts the process and talks to it."""

    def __init__(self, jars: list[str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="interop-"))
        self._log = (self.folder / "driver.log").open("w")
        environment = {**os.environ, "INTEROP_JARS": ",".join(jars), "INTEROP_FOLDER": str(self.folder)}
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HEADWATER_PROGRESS": "off"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            text=True,
            cwd=self.folder,
        )

    def _ask(self, **command: Any) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            log = (self.folder / "driver.log").read_text()
            raise RuntimeError(f"the driver ended: {log[-2000:]}")
        reply = json.loads(answer)
        if "error" in reply:
            raise RuntimeError(f"{command.get('sql', 'the program')}: {reply['error']}")

    def run(self, *statements: str) -> None:
        """Run SQL statements for what they do."""
        for text in statements:
            self._ask(sql=text, out=None)

    def query(self, text: str) -> pa.Table:
        """The rows of a query."""
        out = str(self.folder / "result.arrow")
        self._ask(sql=text, out=out)
        with pa.OSFile(out) as source, pa.ipc.open_file(source) as file:
            return file.read_all()

    def read(self, location: str) -> pa.Table:
        """The rows of a Delta table, by delta-spark's reader."""
        return self.query(f"SELECT * FROM delta.`{location}`")

    def execute(self, program: str, *arguments: str) -> None:
        """Run Python in the process of the session, which it knows as ``session``; its ``arguments`` are texts."""
        self._ask(program=program, arguments=arguments)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _session() -> Any:
    import headwater as hw

    config = {
        "spark.jars": os.environ["INTEROP_JARS"],
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": os.path.join(os.environ["INTEROP_FOLDER"], "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.driver.memory": "1g",
        # Each statement runs once on a few rows: compiling costs more than it saves.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms600m -Xmn300m -XX:MetaspaceSize=256m",
        "spark.buffer.pageSize": "1m",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
    }
    return hw.spark("local[1]", config=config)


def _main() -> None:
    acknowledge_at_once()
    session = _session()
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "program" in command:
                exec(command["program"], {"session": session, "arguments": command["arguments"]})
            else:
                frame = session.sql(command["sql"])
                if command["out"]:
                    table = frame.toArrow()
                    with pa.OSFile(command["out"], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                        writer.write_table(table)
            reply: dict[str, Any] = {"ok": True}
        except Exception as e:  # noqa: BLE001  whatever it is, the other end is told
            reply = {"error": f"{type(e).__name__}: {e}".split("JVM stacktrace")[0][:2000]}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
    session.stop()


if __name__ == "__main__":
    _main()
