"""A publisher that is killed leaves what was served, or what it was about to serve, and the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.serving.folder.conftest import Folders, served

PUBLISHER = """
import sys
from headwater.base.storage import LocalStorage
from headwater.serving.config import Config
from headwater.serving.folder import FolderPublisher
from headwater.testing.faults import FaultPlan
source, data = sys.argv[1:]
config = Config.parse(f"tables: {{features: {{source: {{local: {{path: {source}}}}}, key: [id], parts: 3}}}}", environ={})
with FaultPlan.from_env():
    FolderPublisher("features", config.tables["features"], LocalStorage(data)).publish()
"""

POINTS = (
    *("online.file.before_write:kill:2", "online.file.before_header:kill:3", "derived.record.before_commit:kill"),
    *("storage.put_if_absent.before_publish:kill", "storage.put_if_absent.after_publish:kill"),
    *("derived.record.after_commit:kill", "online.publish.begin:kill", "online.file.before_delete:kill:2"),
)


def publish(folders: Folders, fault: str = "") -> int:
    arguments = [sys.executable, "-c", PUBLISHER, folders.root.url, folders.data.url]
    return subprocess.run(arguments, env={**os.environ, "HEADWATER_FAULTS": fault}, check=False).returncode


@pytest.mark.long
def test_killed_anywhere(folders: Folders) -> None:
    rows = [[{"id": i, "day": day} for i in range(500)] for day in range(10, 10 + len(POINTS) + 2)]
    folders.write("2024-01-10", rows[0])
    assert publish(folders) == 0
    for number, fault in enumerate(POINTS, start=1):
        folders.write(f"2024-01-{10 + number}", rows[number])
        publisher = folders.publisher(parts=3)
        before = served(publisher)
        assert publish(folders, fault) == -signal.SIGKILL
        assert served(publisher) in (before, rows[number]), fault
    assert publish(folders) == 0
    publisher = folders.publisher(parts=3)
    assert served(publisher) == rows[len(POINTS)]
    record = publisher.commits.head().record
    assert record is not None
    assert set(publisher.commits.store.file_names()) <= {*record.files, *record.superseded}
