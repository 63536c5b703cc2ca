"""What the tests of SQL on a lake share: an empty lake, on local disk, or on a server with HEADWATER_TEST_STORAGE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.object_servers import ON_SERVER

import headwater as hw
from headwater.lakehouse import Lake

# On a server these are left out: they look at a table's files, let another implementation open it by its path, make hundreds of tables to ask about
# types, or compare texts with a Spark session's. What Spark does on S3 is asked in tests/lake_spark/test_s3.py.
_TESTS_ON_DISK = {
    "test_a_damaged_file_is_named",
    "test_a_missing_file_is_an_error_and_not_fewer_rows",
    "test_a_query_that_fails_makes_no_table",
    "test_a_table_is_made_as_it_is_written",
    "test_another_implementation_of_delta_reads_a_replaced_table",
    "test_another_implementation_of_delta_reads_the_same",
    "test_as_spark_stores",
    "test_detail",
    "test_links_are_gone_when_the_rows_are_read",
    "test_the_same_rows",
    "test_vacuum",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if ON_SERVER else ():
        name = getattr(item, "originalname", item.name)
        if item.path.parent == Path(__file__).parent and (name in _TESTS_ON_DISK or "[spark" in item.name):
            item.add_marker(pytest.mark.skip(reason="looks at the disk"))


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """An empty lake; files are not flushed to the disk, which tests need not survive."""
    if ON_SERVER:
        server = request.getfixturevalue("server")
        yield hw.connect(server.url("lake"), storage_options=server.options)
        return
    with hw.settings.override(fsync=False):
        yield hw.connect(tmp_path / "lake")


@pytest.fixture
def on_disk() -> None:
    """For tests that look at a table's files."""
    if ON_SERVER:
        pytest.skip("looks at the disk")
