"""Spark's classes as the JVM keeps them in memory, in one file that the JVMs of the tests map instead of reading and checking classes.

A session reads some fifteen thousand classes from JARs before it answers its first query, which is a third of what a short life costs, and the
tests start thirty JVMs. ``python -m tests.java_archive FILE`` runs one session, whose JVM writes the archive when it ends; `make test` does that
once for a .venv, beside the first tests (see ``conftest.py``): those JVMs that start later have it. A JVM that cannot use the file, because
Java or Spark is another, goes on without it and says nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["ARCHIVE", "java_options", "make_beside"]

ARCHIVE = Path(sys.prefix) / "spark.jsa"

# Both are said for each class that cannot be kept, or when the file does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# For every JVM of the tests, in subprocesses too: the second compiler and the collector's threads cost a short life twice the processor
# time and give nothing back. With one compiler Java reserves little room for code, and a long session would compile again and again.
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


def java_options() -> str:
    """What SPARK_SUBMIT_OPTS has to be for a JVM of the tests."""
    # The variable is split at spaces.
    if not ARCHIVE.is_file() or " " in str(ARCHIVE):
        return _SHORT_LIFE
    return f"{_SHORT_LIFE} -XX:SharedArchiveFile={ARCHIVE} {_QUIET}"


def make_beside() -> subprocess.Popen[bytes] | None:
    """Begin to make the archive in another process, if there is none or Spark may be newer than it."""
    ready = ARCHIVE.with_name(".ready")  # the Makefile's
    if not ready.is_file() or (ARCHIVE.is_file() and ARCHIVE.stat().st_mtime >= ready.stat().st_mtime):
        return None
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.java_archive", str(ARCHIVE)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
    )


def _make(file: Path) -> None:
    """Run what most tests run, and let the JVM write down the classes."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_SHORT_LIFE} -XX:ArchiveClassesAtExit={part} {_QUIET}"
    import pyarrow as pa

    import headwater as hw

    config = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    session = hw.spark("local[2]", config=config)
    rows = pa.table({"k": [1, 2, 2], "v": [0.5, 1.5, None], "s": ["a", "b", "c"]})
    with tempfile.TemporaryDirectory() as folder:
        lake = hw.connect(folder, spark=session)
        lake.write("t", session.createDataFrame(rows))
        lake.table("t").spark().createOrReplaceTempView("t")
        session.sql("SELECT k, sum(v), count(DISTINCT s), collect_list(v) FROM t GROUP BY k ORDER BY k").toArrow()
        session.sql("SELECT *, rank() OVER (PARTITION BY k ORDER BY t.v) FROM t LEFT JOIN t u USING (k)").toArrow()
        session.sql("SELECT upper(s) FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.k = t.v) LIMIT 1").collect()
        session.table("t").mapInArrow(lambda batches: batches, "k long, v double, s string").count()
    gateway = session.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc
    session.stop()
    gateway.shutdown()
    jvm.stdin.close()
    try:
        jvm.wait(300)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    _make(Path(sys.argv[1]))
