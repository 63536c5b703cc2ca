"""What the lake's tests share: an empty lake, on local disk, or on a server with HEADWATER_TEST_STORAGE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.object_servers import ON_SERVER

import headwater as hw
from headwater.lakehouse import Lake

# On a server these are left out: they look at a table's files on the disk, or at how one lies there.
_FILES_ON_DISK = {
    "test_checkpoint",
    "test_history",
    "test_interop_jvm",
    "test_oracle",
    "test_protocol",
    "test_snapshot",
}
_TESTS_ON_DISK = {
    "test_a_lost_file_is_found_out_before_the_commit",
    "test_by_timestamp",
    "test_files_named_by_their_whole_path_stay",
    "test_files_of_no_version_go_when_they_are_old",
    "test_old_files_without_a_field_of_a_struct",
    "test_what_others_keep_beside_the_data_stays",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if ON_SERVER else ():
        name = getattr(item, "originalname", item.name)
        if item.path.parent == Path(__file__).parent and (item.path.stem in _FILES_ON_DISK or name in _TESTS_ON_DISK):
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
