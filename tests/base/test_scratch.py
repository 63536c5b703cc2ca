"""The folder for temporary files is made when it is needed, and an error names it where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import StorageError
from headwater.base.scratch import scratch_parent


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
