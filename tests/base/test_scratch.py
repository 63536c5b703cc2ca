"""The folder for temporary files is made when it is needed, and an error names it where that cannot be; what killed processes
leave in it is swept up."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import StorageError
from headwater.base.scratch import own_folder, scratch_parent


def test_the_folder_is_made(tmp_path: Path) -> None:
    with hw.settings.override(spill_dir=tmp_path / "not" / "yet"):
        assert scratch_parent() == tmp_path / "not" / "yet" and (tmp_path / "not" / "yet").is_dir()
        assert scratch_parent() == tmp_path / "not" / "yet"
    assert scratch_parent() is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with hw.settings.override(spill_dir=tmp_path / "file" / "x"), pytest.raises(StorageError, match="spill_dir"):
        scratch_parent()


def test_everything_that_uses_it_works_without_it(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake")
    for n in range(3):
        lake.write("t", pa.table({"id": [n], "body": ["card"]}), mode="append")
    with hw.settings.override(spill_dir=tmp_path / "here", fsync=False):
        index = lake.index("ix", "t", text="body", target_rows=2, refresh=True)
        assert index.count("card") == 3 and index.merge() == 2 and index.verify().equal
        lake.table("t").optimize()
    assert (tmp_path / "here").is_dir()


_CHILD = """
import os, sys, tempfile
from headwater.base.scratch import own_folder
print(tempfile.mkdtemp(prefix="headwater-merge-", dir=own_folder(sys.argv[1])), flush=True)
if sys.argv[2] == "fork" and os.fork():
    os._exit(0)  # the child is as alive as its parent was, and may use the folder
sys.stdin.read()
"""


def _process(place: Path, how: str = "alone") -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(place), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_folders_of_killed_processes_are_swept_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "headwater-scratch-new").mkdir()  # somebody is about to put the lock into it
    (tmp_path / "headwater-scratch-old").mkdir()
    os.utime(tmp_path / "headwater-scratch-old", (0, 0))
    (tmp_path / "of others").mkdir()
    killed, left = _process(tmp_path)
    alive, used = _process(tmp_path)
    forked, lent = _process(tmp_path, "fork")
    with killed, alive, forked:
        killed.kill()
        killed.wait()
        forked.wait()
        assert left.is_dir() and used.is_dir() and lent.is_dir()
        own = own_folder(tmp_path)
        assert not left.parent.exists() and used.is_dir() and lent.is_dir()
        for one in (alive, forked):
            assert one.stdin is not None
            one.stdin.close()
        alive.wait()
        assert not used.parent.exists(), "a process that ends deletes its own"
    names = {path.name for path in tmp_path.iterdir()} - {lent.parent.name}
    assert names == {Path(own).name, "headwater-scratch-new", "of others"}


def test_a_folder_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    first = own_folder(tmp_path)
    assert own_folder(tmp_path) == first
    shutil.rmtree(first)
    assert Path(own_folder(tmp_path)).is_dir()


def test_a_forked_child_has_its_own(tmp_path: Path) -> None:
    mine = own_folder(tmp_path)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert pool.submit(own_folder, tmp_path).result() != mine
    assert os.path.isdir(mine)
