"""A publisher that is killed leaves what was served, or what it was about to serve, and the next one goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from tests.incremental.killing import Server
from tests.serving.folder.conftest import Folders, served

POINTS = (
    *("online.file.before_write:kill:2", "online.file.before_header:kill:3", "derived.record.before_commit:kill"),
    *("storage.put_if_absent.before_publish:kill", "storage.put_if_absent.after_publish:kill"),
    *("derived.record.after_commit:kill", "online.publish.begin:kill", "online.file.before_delete:kill:2"),
)


@pytest.fixture
def lives() -> Iterator[Server]:
    made = Server("tests.serving.folder.kill_server")
    yield made
    made.close()


@pytest.mark.long
def test_killed_anywhere(folders: Folders, lives: Server) -> None:
    def publish(fault: str = "") -> int:
        status = lives.live(source=folders.root.url, data=folders.data.url, fault=fault)
        return os.waitstatus_to_exitcode(status)

    rows = [[{"id": i, "day": day} for i in range(500)] for day in range(10, 10 + len(POINTS) + 2)]
    folders.write("2024-01-10", rows[0])
    assert publish() == 0
    for number, fault in enumerate(POINTS, start=1):
        folders.write(f"2024-01-{10 + number}", rows[number])
        publisher = folders.publisher(parts=3)
        before = served(publisher)
        assert publish(fault) == -signal.SIGKILL
        assert served(publisher) in (before, rows[number]), fault
    assert publish() == 0
    publisher = folders.publisher(parts=3)
    assert served(publisher) == rows[len(POINTS)]
    record = publisher.commits.head().record
    assert record is not None
    assert set(publisher.commits.store.file_names()) <= {*record.files, *record.superseded}
