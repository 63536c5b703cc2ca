"""`hw.spark()`: a sensible local session, or yours.

A session that is already running is always taken as it is: in a notebook, on a platform or under
``spark-submit`` the session belongs to somebody else. Only where there is none is one made, from the
settings below, which are chosen so that answers do not depend on the machine (UTC, ANSI) and a laptop stays
quiet and clean (errors only, no web server, nothing bound beyond the loopback interface, no files in the
working directory).

What is asked for decides the kind of session:

- nothing, ``local[…]``: a JVM on this machine, its memory and parallelism fitted to it;
- ``sc://host:port``: a Spark Connect client, which needs no Java here;
- ``spark://…``, ``yarn``, ``k8s://…``: a driver here, executors on the cluster. Memory, parallelism, network
  and the workers' Python are the cluster's business, so they are left alone.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from headwater.base.errors import InputError, SetupError
from headwater.spark.class_archive import archive_options
from headwater.spark.java import Java, check_java
from headwater.spark.launch import start_context
from headwater.spark.machine import cores, driver_memory_mb, memory_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["QUICK_START", "active_session", "has_delta", "is_connect", "require_pyspark", "spark"]

_DATA_SOURCES = ("headwater.search.spark.source",)
"""Modules of rooms above that have a data source, each with a function `register`."""
_has_delta: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()

_SAME_ANSWERS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # A text '${HOME}' in SQL is that text, and not what the environment says.
    "spark.sql.variable.substitute": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
}
QUICK_START = (
    "-XX:Tier4InvocationThreshold=25000",
    "-XX:Tier4MinInvocationThreshold=3000",
    "-XX:Tier4CompileThreshold=75000",
    "-XX:Tier4BackEdgeThreshold=200000",
)
"""Java's second, optimising compiler begins with a method five times later than by default.

A third of the processor time up to the first rows is spent on methods that only the start calls often. On two cores the
start waits for that. What runs for long crosses these numbers within a second of work, too.
"""
# What Spark's pages and event logs show as stars: its own default, keys of Azure, and all that is given for storage.
_REDACTED = "(?i)secret|password|token|access[.]?key|account[._]?key|spark[.]headwater[.]storage[.]"
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def spark(
    master: str | None = None, *, app_name: str = "headwater", config: Mapping[str, str] | None = None
) -> SparkSession:
    """The running Spark session, or a new one.

    Parameters
    ----------
    master
        ``sc://host:port`` for Spark Connect, a cluster's URL, ``local[2]``, or None for this machine.
    app_name
        What a cluster's own pages call the application.
    config
        Spark settings that win over Headwater's. On a running session they are set where Spark allows it.

    Raises
    ------
    SetupError
        pyspark or Java is missing (E7002, E7001), or Spark does not start (E7003).
    InputError
        A session runs already, and it is not what ``master`` or ``config`` ask for (E1001).

    Examples
    --------
    >>> import headwater as hw
    >>> session = hw.spark()  # doctest: +SKIP
    >>> session.range(3).count()  # doctest: +SKIP
    3
    """
    require_pyspark()
    config = dict(config or {})
    running = active_session()
    session = _start(master, app_name, config) if running is None else _fit(running, master, config)
    for module in _DATA_SOURCES:
        import_module(module).register(session)
    return session


def _start(master: str | None, app_name: str, config: Mapping[str, str]) -> SparkSession:
    url = master or os.environ.get("SPARK_REMOTE")
    if url is not None and url.startswith("sc://"):
        return _connect(url, app_name, config)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _submitted(app_name, config)
    return _launch(master or "local[*]", app_name, config)


def active_session() -> SparkSession | None:
    """The session that is running in this process, classic or Connect, or None."""
    # A process that has not imported pyspark has no session, and need not pay for the import.
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def is_connect(session: SparkSession) -> bool:
    """Whether the session is a client of Spark Connect, without a JVM in this process."""
    return ".connect." in type(session).__module__


def has_delta(session: SparkSession) -> bool:
    """Whether ``format("delta")`` works in this session, classic or Connect.

    Spark itself is asked, once a session, by analysing a read of a table that does not exist: without
    Delta's classes it does not know the format; with them, Delta says that there is no such table.
    """
    known = _has_delta.get(session)
    if known is None:
        known = _has_delta[session] = _ask_for_delta(session)
    return known


def _ask_for_delta(session: SparkSession) -> bool:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        _ = session.read.format("delta").load("/headwater/no/such/table").schema
    except (PySparkException, Py4JError) as error:
        # A classic session gives this one as a bare Java exception, so the condition is read from its text.
        text = str(error)
        if "DATA_SOURCE_NOT_FOUND" in text or "DELTA_CONFIGURE_SPARK_SESSION" in text:
            return False
        if "[DELTA_" in text or "[PATH_NOT_FOUND]" in text:
            return True
        raise
    return True


def require_pyspark() -> None:
    """Raise E7002 where pyspark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise SetupError.missing_package("pyspark", "Spark", extra="spark") from error


def _fit(session: SparkSession, master: str | None, config: Mapping[str, str]) -> SparkSession:
    stop = "the running session has another; call .stop() on it first, or leave this out to use it"
    have = session.conf.get("spark.master", None)
    if master is not None and have is not None and master not in (have, "local[*]") and "://" not in master:
        raise InputError.bad_argument("master", master, f"{have}: {stop}")
    for name, value in config.items():
        if session.conf.get(name, None) == value:
            continue
        if not session.conf.isModifiable(name):
            raise InputError.bad_argument(name, value, f"{session.conf.get(name, None)}: {stop}")
        session.conf.set(name, value)
    return session


def _connect(url: str, app_name: str, config: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _refuse_if_refused(url)
    try:
        session = SparkSession.builder.remote(url).appName(app_name).getOrCreate()
        for name, value in {**_SAME_ANSWERS, **config}.items():
            if session.conf.isModifiable(name):
                session.conf.set(name, value)
    except ImportError as error:
        raise SetupError.missing_package("grpcio", "Spark Connect", extra="connect") from error
    except PySparkException as error:
        raise SetupError.spark_failed(f"{url}: {str(error).splitlines()[0]}") from error
    return session


def _refuse_if_refused(url: str) -> None:
    # PySpark tries a port that nobody listens on again for ten minutes; a refusal now is an answer.
    where = urlsplit(url)
    try:
        socket.create_connection((where.hostname or "localhost", where.port or 15002), timeout=5).close()
    except ConnectionRefusedError as error:
        raise SetupError.spark_failed(f"nobody listens at {url}") from error
    except OSError:
        return  # perhaps only a proxy knows the way


def _submitted(app_name: str, config: Mapping[str, str]) -> SparkSession:
    # spark-submit has started the JVM and chosen the master.
    from pyspark.sql import SparkSession

    return SparkSession.builder.appName(app_name).config(map={**_SAME_ANSWERS, **config}).getOrCreate()


def _launch(master: str, app_name: str, config: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    local = master.startswith("local")
    java = check_java(options=QUICK_START if local else ())
    options = {"spark.master": master, "spark.app.name": app_name, **_SAME_ANSWERS, **_QUIET}
    options["spark.redaction.regex"] = _REDACTED
    if local:
        options |= _local_options()
    options |= config
    asked = config.get("spark.driver.extraJavaOptions", "")
    options["spark.driver.extraJavaOptions"] = _java_options(asked, java, local=local)
    start_context(options, python=sys.executable if local else None)
    return SparkSession.builder.getOrCreate()


def _local_options() -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{driver_memory_mb(memory_bytes())}m",
        "spark.python.daemon.module": "headwater.spark.daemon",
        # What never leaves the machine is not worth compressing, and there is nobody to lose or forge it on the way.
        "spark.shuffle.checksum.enabled": "false",
        "spark.shuffle.compress": "false",
        "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.sql.warehouse.dir": _warehouse().as_uri(),
    }


def _java_options(asked: str, java: Java, *, local: bool) -> str:
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    derby = _scratch() / "derby"
    # Java's usual collector marks the whole heap after a few arrays of half a region, which blocks would be. Other
    # collectors have no regions and do not mind; which one it is may be said in many places, and twice is an error.
    own = ["-XX:G1HeapRegionSize=16m", *java.options, *archive_options(java)] if local else []
    return " ".join([*own, f"-Dlog4j2.configurationFile={log}", f"-Dderby.system.home={derby}", asked]).strip()


def _warehouse() -> Path:
    # One of its own: the catalogue of tables ends with the session, so what another one left there would only be in the
    # way.
    _scratch().mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(prefix="warehouse-", dir=_scratch())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _scratch() -> Path:
    # One folder a user: what Spark insists on writing somewhere goes here and not into the working directory.
    return Path(tempfile.gettempdir()).resolve() / f"headwater-spark-{os.getuid()}"
