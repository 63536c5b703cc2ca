"""What every test may ask for: a Spark session, a real S3 server and emulators of other clouds, one per worker."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings
from tests import scratch
from tests.java_archive import java_options
from tests.leftovers import Leftovers
from tests.object_servers import ON_SERVER, STORAGE, start_or_skip
from tests.prompt_replies import acknowledge_at_once

from headwater.testing.object_server import ObjectServer
from headwater.testing.s3_server import S3Server, serve_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.interop_driver import Driver

# The everyday profile finds the same few cases on every machine; `make soak` looks for new ones, and for many.
settings.register_profile(
    "default",
    max_examples=6 if ON_SERVER else 15,  # what is drawn was compared on the disk already
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "long",
    settings.get_profile("default"),
    max_examples=int(os.environ.get("HEADWATER_TEST_EXAMPLES", "500")),
    derandomize=False,
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Each query runs once on a few rows, so that generating and compiling code for it costs more than interpreting it.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

# Each sort, hash join and aggregation takes a page at least, which Spark makes of 32 MB in a session of this size: the collector would be at
# work for a tenth of the time. It is also called less often with room for what is young.
_SMALL_QUERIES = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-Xms1g -Xmn400m -XX:MetaspaceSize=256m",
    "spark.buffer.pageSize": "1m",
}

# Fixtures that are a Spark session, or are there to start one in another process.
_STARTS_A_JVM = frozenset({"jvm", "run_python", "spark", "start_spark"})

# Fixtures whose objects lie on the server that HEADWATER_TEST_STORAGE names.
_ON_SERVERS = (
    frozenset({"lake", "place", "s3", "server"}) if STORAGE == "s3" else frozenset({"lake", "place", "server"})
)

_SCRATCH = pytest.StashKey[Path]()

# `make` does the same; a plain pytest has it from here. Each of the hundred processes that the tests start would compile all sources again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Subprocesses have them too.
_OWN_OPTIONS = "SPARK_SUBMIT_OPTS" not in os.environ
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


class _WithExamples:
    """Modules without an example in a docstring are not imported and searched for one: that is nearly all of the tests."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        if any(isinstance(one, DoctestModule) for one in found) and b">>>" not in file_path.read_bytes():
            return [one for one in found if not isinstance(one, DoctestModule)]
        return found


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Leftovers())
    config.pluginmanager.register(_WithExamples())  # for all folders, where a hook of this file is for its own
    if (folder := scratch.in_memory()) is not None:
        config.stash[_SCRATCH] = folder


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    folder = session.config.stash.get(_SCRATCH, None)
    if folder is not None and not exitstatus:
        session.config.add_cleanup(partial(scratch.remove, folder))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ON_SERVER:
        # Only what lies on the server can differ there.
        elsewhere = [item for item in items if not _ON_SERVERS & set(getattr(item, "fixturenames", ()))]
        config.hook.pytest_deselected(items=elsewhere)
        left_out = set(elsewhere)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        # The fixtures say what a test uses, so the marks need not be written twice.
        fixtures = getattr(item, "fixturenames", ())
        if not _STARTS_A_JVM.isdisjoint(fixtures):
            item.add_marker("spark")
        if "s3" in fixtures or ("server" in fixtures and STORAGE in ("", "s3")):
            item.add_marker("s3")
        if {"azure", "cloud", "gcs"} & set(fixtures) or ("server" in fixtures and STORAGE in ("azure", "gcs")):
            item.add_marker("cloud")
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="needs --slow"))
    if hasattr(config, "workerinput"):
        from tests.scheduling import sort_files

        sort_files(items)


def pytest_collection_finish() -> None:
    # Ten thousand tests and the modules they import are there to the end: whoever collects garbage need not look through them again.
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries look for leaks when the process ends


def pytest_sessionstart(session: pytest.Session) -> None:
    """Whoever deals out the tests also sees to it that what takes minutes is made and fetched meanwhile."""
    config = session.config
    deals = not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no"
    if deals and not ON_SERVER and "not spark" not in config.getoption("markexpr"):
        from tests.interop_jars import fetch_beside
        from tests.java_archive import make_beside

        if (making := make_beside()) is not None:
            config.add_cleanup(partial(_await, making))
        if (fetching := fetch_beside()) is not None:
            config.add_cleanup(partial(_end, fetching))


def _await(process: subprocess.Popen[bytes]) -> None:
    process.wait()


def _end(group: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group.pid, signal.SIGKILL)
    group.wait()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    # Before each test, because the archive of classes may have been made meanwhile.
    if _OWN_OPTIONS:
        os.environ["SPARK_SUBMIT_OPTS"] = java_options()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import BothEnds

    return BothEnds(config, log)


@pytest.fixture(scope="session", autouse=True)
def kernel_signatures() -> Iterator[None]:
    """Kernels are called with the types that their annotations name: what is compiled beforehand is what is used."""
    yield
    if "headwater.kernels.compiled" in sys.modules:
        from headwater.kernels.compiled import kernels
        from headwater.kernels.signature import signature

        others = [
            f"{name} has {signature(one.py_func)} and is called with {types}"
            for name, one in kernels.items()
            for types in one.overloads
            if types != signature(one.py_func)
        ]
        assert not others, "\n".join(others)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A real local session, as `hw.spark()` makes it, except that it is small: another worker has one too."""
    import headwater as hw

    acknowledge_at_once()
    session = hw.spark("local[2]", config={**_SMALL_QUERIES, **INTERPRETED})
    yield session
    # Where the JVM is gone already, stop() waits for ever; the worker ends right after this anyway.
    stopping = threading.Thread(target=session.stop, daemon=True)
    stopping.start()
    stopping.join(30)


@pytest.fixture(scope="session")
def jvm() -> Iterator[Driver]:
    """A session with delta-spark's own classes, in another process."""
    from tests.interop_driver import Driver
    from tests.interop_jars import delta_jars

    driver = Driver(delta_jars())
    yield driver
    driver.close()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server: ``s3.url("name")`` is a fresh prefix, ``s3.options`` are the storage options."""
    with serve_s3() as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[ObjectServer]:
    """Azurite, Microsoft's emulator of blob storage."""
    yield from start_or_skip("azure")


@pytest.fixture(scope="session")
def gcs() -> Iterator[ObjectServer]:
    """fake-gcs-server, an emulator of Google Cloud Storage."""
    yield from start_or_skip("gcs")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> ObjectServer:
    """The object store that HEADWATER_TEST_STORAGE names; the S3 server where it names none."""
    found: ObjectServer = request.getfixturevalue(STORAGE or "s3")
    return found


@pytest.fixture(scope="session", params=["azure", "gcs"])
def cloud(request: pytest.FixtureRequest) -> ObjectServer:
    """Each of the emulators, for the tests of them that run every day."""
    found: ObjectServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with its code generator off: hundreds of expressions in one query would be compiled for minutes. Nor is a plan of a few rows
    worth planning again at each stage."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    yield session
    spark.createDataFrame([(1,)], "a int")  # which makes the first session the active one again, for other tests
