"""Starting Spark's JVM without its noise, and saying why when it does not start.

The JVM writes to stderr before any logger is set up (`WARNING: Using incubator modules`), and when it
fails the reason is only there or on stdout: what Python sees is "Java gateway process exited". So both
streams come through a pipe. A daemon thread drops the known noise and passes on the rest to the same stream of
this process for as long as the JVM lives (Python workers of a local session print there too). Nothing is passed on
until the start has succeeded: a failure is one line, not a stack trace, and takes its reason from the lines that were
held back.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from headwater.base.errors import SetupError

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["start_context"]

_NOISE = re.compile(
    r"Using incubator modules|Unable to load native-hadoop library|Setting default log level"
    r"|To adjust logging level use|resolves to a loopback address|Set SPARK_LOCAL_IP"
    r"|Using Spark's default log4j profile|^\s*$"
)


def start_context(options: Mapping[str, str], *, python: str | None) -> SparkContext:
    """A new SparkContext, in a new JVM unless this process has one from an earlier session.

    ``python`` is what the workers run; None leaves it to the cluster.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    pumps: list[_Pump] = []
    try:
        with _workers_run(python):
            if SparkContext._gateway is None:
                out, err = _Pump("stdout"), _Pump("stderr")
                pumps = [err, out]
                with out.sink as stdout, err.sink as stderr:
                    gateway = launch_gateway(conf, {"stdout": stdout, "stderr": stderr})  # type: ignore[no-untyped-call]
                SparkContext._ensure_initialized(gateway=gateway)
            context = SparkContext(conf=conf)
    except (PySparkException, Py4JError, OSError, ValueError) as error:
        raise SetupError.spark_failed(_reason(error, pumps)) from error
    for pump in pumps:
        pump.release()
    _quieten_pyspark()
    return context


def _quieten_pyspark() -> None:
    # PySpark logs every failed query to stderr, as JSON with the Java stack trace, and then raises it as well.
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # By this way in, because a plain logger of that name would break PySpark's own call.
        PySparkLogger.getLogger(name).setLevel("CRITICAL")


class _Pump(threading.Thread):
    """Reads one stream of the JVM, from ``sink`` to its end; holds the lines back until ``release``."""

    def __init__(self, stream: Literal["stdout", "stderr"]) -> None:
        super().__init__(name=f"headwater-spark-{stream}", daemon=True)
        read_end, write_end = os.pipe()
        self.sink = os.fdopen(write_end, "wb")
        self._source = os.fdopen(read_end, errors="replace")
        self._stream = stream
        self._lock = threading.Lock()
        self._held: list[str] | None = []
        self.start()

    def run(self) -> None:
        with self._source:
            for line in self._source:
                if _NOISE.search(line):
                    continue
                with self._lock:
                    if self._held is None:
                        self._pass_on(line)
                    else:
                        self._held.append(line)

    def release(self) -> None:
        with self._lock:
            for line in self._held or ():
                self._pass_on(line)
            self._held = None

    def _pass_on(self, line: str) -> None:
        # The stream of this moment: a notebook or a test may have put another in its place.
        with suppress(OSError, ValueError, AttributeError):  # closed at exit; the JVM must not block on a full pipe
            stream = getattr(sys, self._stream)
            stream.write(line)
            stream.flush()

    def held(self) -> list[str]:
        self.join(timeout=1)
        with self._lock:
            return [line.strip() for line in self._held or ()]


def _reason(error: BaseException, pumps: list[_Pump]) -> str:
    """The one line that says what went wrong, of a Java or Python exception or of the JVM's last words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    if not java:
        java = [line for pump in pumps for line in pump.held()]
    named = [line for line in java if re.search(r"(Exception|Error)\b.*: ", line)]
    words = named[:1] or java[:2] or lines[:1] or [repr(error)]
    return re.sub(r"^(Exception in thread \S+ )?[\w.$]+(Exception|Error): ", "", ": ".join(words))


@contextmanager
def _workers_run(python: str | None) -> Iterator[None]:
    # SparkContext reads the interpreter of its workers from the environment, once, when it is made.
    if python is None or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = python
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]
