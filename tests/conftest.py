"""What every test may ask for: a Spark session and a real S3 server, one of each per worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from headwater.testing.s3_server import S3Server, serve_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The everyday profile finds the same cases on every machine; `make soak` looks for new ones.
settings.register_profile(
    "default",
    max_examples=25,
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        # The fixtures say what a test uses, so the marks need not be written twice.
        fixtures = getattr(item, "fixturenames", ())
        if "spark" in fixtures:
            item.add_marker("spark")
        if "s3" in fixtures:
            item.add_marker("s3")
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="needs --slow"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A real local session, as `hw.spark()` makes it, except that it is small: another worker has one too."""
    import headwater as hw

    # The second compiler costs a short session twice the processor time and gives nothing back.
    config = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    session = hw.spark("local[2]", config=config)
    yield session
    # Where the JVM is gone already, stop() waits for ever; the worker ends right after this anyway.
    stopping = threading.Thread(target=session.stop, daemon=True)
    stopping.start()
    stopping.join(30)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server: ``s3.url("name")`` is a fresh prefix, ``s3.options`` are the storage options."""
    with serve_s3() as server:
        yield server
