"""Spark's classes as Java keeps them in memory, in one file that a JVM maps.

A session reads and checks about 15,000 classes out of 277 JARs before its first answer. Java can write those that a
process has loaded into a file when that process ends (a dynamic archive of class data), and a later process maps the
file. The file belongs to one build of Java and to one set of JARs at one place, so it cannot come with a wheel:
``headwater warm --spark`` makes it, once per installation.

The file is ``$XDG_CACHE_HOME/headwater/spark/<digest>.jsa`` (``~/.cache`` by default); the digest is of Java's path and
version, of Spark's version and of the folder that its JARs are in. Java itself checks that each JAR is the one that the
file was made from. Where it is not, the JVM reads the classes as if there were no file, and says nothing.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.spark.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["archive_file", "archive_options", "end_session", "making_options"]

# Java would name each class that cannot be kept, or say that a file does not fit.
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive_file(java: Java) -> Path:
    """Where the archive for this Java and the installed Spark is, or would be."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    facts = (os.path.realpath(java.path), java.version, pyspark.__version__, os.path.realpath(home))
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(cache) / "headwater" / "spark" / f"{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}.jsa"


def archive_options(java: Java) -> list[str]:
    """The options for a JVM that shall use the archive, if there is one."""
    file = archive_file(java)
    return [_quoted(f"-XX:SharedArchiveFile={file}"), *_SILENT] if file.is_file() else []


def making_options(part: Path) -> str:
    """The options for a JVM that shall write its classes to ``part`` when it ends."""
    return " ".join([_quoted(f"-XX:ArchiveClassesAtExit={part}"), *_SILENT])


def end_session(session: SparkSession, *, timeout_seconds: float) -> None:
    """Stop a session that this process began, and wait until its JVM has ended."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    process: subprocess.Popen[bytes] = gateway.proc
    session.stop()
    gateway.shutdown()
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()  # the JVM ends when its input does
    process.wait(timeout_seconds)


def _quoted(option: str) -> str:
    # Spark splits the options as a shell would.
    return f'"{option}"' if " " in option else option
