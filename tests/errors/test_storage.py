"""Storage that refuses or fails: permissions, a full disk, errors of the device."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.errors import StorageError
from headwater.lakehouse import Lake
from headwater.testing.faults import FaultPlan

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
DENIED = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))


def failing(point: str, error: OSError, call: Attempt) -> Attempt:
    def attempt() -> None:
        with FaultPlan().raise_at(point, error=error):
            call()

    return attempt


def case_disk_full_at_a_data_file(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return failing("storage.open_output.before_publish", FULL, lambda: t.append(ROWS))


def case_disk_full_at_the_commit(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return failing("storage.put_if_absent.before_publish", FULL, lambda: t.append(ROWS))


def case_disk_full_at_a_new_table(lake: Lake) -> Attempt:
    return failing("storage.put_if_absent.before_publish", FULL, lambda: lake.write("orders", ROWS))


def case_no_permission_to_write_a_data_file(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return failing("storage.open_output.before_publish", DENIED, lambda: t.update({"amount": "0"}))


def case_no_permission_to_commit(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return failing("storage.put_if_absent.before_publish", DENIED, lambda: t.overwrite(ROWS))


def case_no_permission_to_vacuum(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    t.overwrite(ROWS)
    os.utime(next(Path(t.location).glob("*.parquet")), (1, 1))
    for file in Path(t.location).glob("*.parquet"):
        os.utime(file, (1, 1))
    call = lambda: t.vacuum(retention_hours=0, enforce_retention=False)  # noqa: E731
    return failing("storage.delete.before", DENIED, call)


def case_device_error_at_a_data_file(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return failing("storage.open_output.before_publish", BROKEN, lambda: t.append(ROWS))


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_without_rights(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake")
    t = lake.write("orders", ROWS)
    log = Path(t.location) / "_delta_log"
    log.chmod(0o500)
    try:
        with pytest.raises(StorageError) as caught:
            t.append(ROWS)
        assert caught.value.code == "E6001"
    finally:
        log.chmod(0o700)


def test_a_failing_checkpoint_fails_no_write(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    t = hw.connect(tmp_path / "lake").write("orders", ROWS, properties={"delta.checkpointInterval": "1"})
    for point in ("lake.commit.after_publish", "lake.checkpoint.before_publish", "lake.checkpoint.before_hint"):
        before = t.version
        with FaultPlan().raise_at(point):
            t.append(ROWS)
        assert t.version == before + 1
        said = "could not be read back" if point == "lake.commit.after_publish" else "its checkpoint failed"
        assert f"is committed, but {said}" in caplog.text
        caplog.clear()
    assert t.count() == 8
