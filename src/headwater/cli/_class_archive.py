"""Making the archive of Spark's classes (`headwater.spark.class_archive`): a session of its own that does a little of
everything.

The session runs in a process of its own, because a JVM writes its classes when it ends. What it does decides which
classes are kept: a stream that is joined and collected, a view of Spark's on a table, queries with a group, a join and
a window, and a write.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from headwater.base import events
from headwater.base.errors import SetupError

__all__ = ["make_archive"]

_LIMIT_SECONDS = 600
_QUERIES = (
    "SELECT k, sum(v), count(DISTINCT s), collect_list(v) FROM t GROUP BY k ORDER BY k",
    "SELECT *, rank() OVER (PARTITION BY k ORDER BY t.v) FROM t LEFT JOIN t u USING (k)",
    "SELECT upper(s) FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.k = t.v) LIMIT 1",
)


def make_archive() -> tuple[Path, bool]:
    """The archive for the installed Java and Spark, and whether it was made now."""
    from headwater.spark.class_archive import archive_file
    from headwater.spark.java import check_java
    from headwater.spark.session import require_pyspark

    require_pyspark()
    file = archive_file(check_java())
    if file.is_file():
        return file, False
    file.parent.mkdir(parents=True, exist_ok=True)
    with events.task("keep Spark's classes"), tempfile.TemporaryDirectory(dir=file.parent) as folder:
        part = Path(folder) / file.name
        command = [sys.executable, "-W", "ignore", "-m", __name__, str(part)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False)
        if done.returncode or not part.is_file():
            words = done.stderr.strip().splitlines() or ["Java wrote no archive"]
            raise SetupError.spark_failed(words[-1])
        part.replace(file)
    return file, True


def _exercise(part: Path) -> None:
    import pyarrow as pa

    import headwater as hw
    from headwater.spark.class_archive import end_session, making_options

    session = hw.spark(config={"spark.driver.extraJavaOptions": making_options(part)})
    rows = pa.table({"k": [1, 2, 2], "v": [0.5, 1.5, None], "s": ["a", "b", "c"]})
    with tempfile.TemporaryDirectory() as folder:
        lake = hw.connect(folder, spark=session)
        lake.write("t", session.createDataFrame(rows))
        stream = lake.stream(rows, time="k", by="s", tiebreak="v")
        stream.join_asof(stream.select("k", "s", "v")).collect()
        lake.table("t").spark().createOrReplaceTempView("t")
        for query in _QUERIES:
            session.sql(query).toArrow()
    end_session(session, timeout_seconds=_LIMIT_SECONDS)


if __name__ == "__main__":
    _exercise(Path(sys.argv[1]))
