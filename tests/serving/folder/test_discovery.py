"""Which folder is the newest that is complete: the same on the disk and on S3."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest
from tests.serving.folder.conftest import Folders

from headwater.base.errors import NotFoundError
from headwater.base.storage import open_storage
from headwater.serving.folder import discover
from headwater.serving.folder.discovery import look_at


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.s3)])
def source(request: pytest.FixtureRequest) -> Folders:
    found: Folders = request.getfixturevalue("folders" if request.param == "disk" else "s3_folders")
    return found


def newest(source: Folders) -> str | None:
    found = discover(source.root).newest
    return None if found is None else found.name


def test_the_newest_of_several(source: Folders) -> None:
    for day in ("2024-01-13", "2024-01-14", "2023-12-31"):
        source.write(day)
    source.write("2024-01-14", name="part-1.parquet")
    found = discover(source.root)
    assert found.newest is not None and found.skipped == ()
    assert (found.newest.day, found.newest.number) == (date(2024, 1, 14), 20240114)
    assert [file.path for file in found.newest.files] == ["2024-01-14/part-0.parquet", "2024-01-14/part-1.parquet"]
    assert found.newest.bytes == sum(file.size for file in found.newest.files) > 0


def test_nothing_at_all(source: Folders) -> None:
    assert discover(source.root).newest is None
    source.put("readme.txt", b"x")
    assert discover(source.root).newest is None


def test_no_success(source: Folders) -> None:
    source.write("2024-01-13", done=False)
    found = discover(source.root)
    assert (found.newest, found.skipped) == (None, ("2024-01-13 has no _SUCCESS",))


def test_a_newer_partition_that_is_being_written(source: Folders) -> None:
    source.write("2024-01-13")
    source.write("2024-01-14", done=False)
    found = discover(source.root)
    assert found.newest is not None and found.newest.name == "2024-01-13"
    assert found.skipped == ("2024-01-14 has no _SUCCESS",)
    source.put("2024-01-14/_SUCCESS")
    assert newest(source) == "2024-01-14"


def test_an_empty_folder(source: Folders) -> None:
    source.write("2024-01-13")
    if (local := source.root.local_path("2024-01-14")) is not None:
        os.mkdir(local)
    else:
        source.put("2024-01-14/", b"")  # as consoles make folders
    assert newest(source) == "2024-01-13"


def test_success_without_parquet(source: Folders) -> None:
    source.write("2024-01-13")
    source.put("2024-01-14/_SUCCESS")
    source.put("2024-01-14/part-0.csv", b"id\n1\n")
    found = discover(source.root)
    assert found.newest is not None and found.newest.name == "2024-01-13"
    assert found.skipped == ("2024-01-14 has _SUCCESS and no Parquet files",)


@pytest.mark.parametrize(
    "bad", ["2024-02-30", "2024-1-5", "2024-13-01", "20240201", "2024-01-15x", "0000-01-01", "today"]
)
def test_names_that_are_no_dates(folders: Folders, bad: str) -> None:
    folders.write("2024-01-13")
    folders.write(bad)
    assert newest(folders) == "2024-01-13"


def test_names_that_are_no_dates_on_s3(s3_folders: Folders) -> None:
    for name in ("2024-01-13", "2024-02-30", "2024-1-5"):
        s3_folders.write(name)
    assert newest(s3_folders) == "2024-01-13"


def test_only_bad_dates_are_told(folders: Folders) -> None:
    folders.write("2024-1-5")
    folders.write("2024-02-30")
    folders.write("other")
    assert discover(folders.root).skipped == (
        "2024-1-5 is not a date written as YYYY-MM-DD",
        "2024-02-30 is not a date written as YYYY-MM-DD",
    )


def test_digits_of_other_scripts_are_no_dates(folders: Folders) -> None:
    folders.write("٢٠٢٤-٠١-١٤")
    assert newest(folders) is None


def test_files_at_the_top_level(source: Folders) -> None:
    source.write("2024-01-13")
    source.put("_SUCCESS")
    source.put("part-0.parquet", b"x")
    source.put("2024-01-20", b"a file, not a folder")
    source.put("2024-01-21.parquet", b"x")
    assert newest(source) == "2024-01-13"


def test_nested_folders(source: Folders) -> None:
    source.write("2024-01-13")
    source.write("2024-01-14/region=eu", done=False)
    source.put("2024-01-14/_SUCCESS")
    found = discover(source.root).newest
    assert found is not None and found.name == "2024-01-14"
    assert (found.files, found.nested) == ((), ("region=eu/part-0.parquet",))


def test_success_of_a_folder_inside_is_not_that_of_the_folder(source: Folders) -> None:
    source.write("2024-01-13")
    source.write("2024-01-14", done=False)
    source.put("2024-01-14/sub/_SUCCESS")
    assert newest(source) == "2024-01-13"


def test_what_other_tools_leave_counts_for_nothing(source: Folders) -> None:
    source.write("2024-01-13")
    for name in ("_temporary/0/part-9.parquet", ".hidden.parquet", "_metadata.parquet", "part-0.parquet.crc"):
        source.put(f"2024-01-13/{name}", b"x")
    found = discover(source.root).newest
    assert found is not None and found.nested == ()
    assert [file.path for file in found.files] == ["2024-01-13/part-0.parquet"]


def test_dates_inside_dates(source: Folders) -> None:
    source.write("2024-01-13")
    source.write("archive/2024-02-01")
    assert newest(source) == "2024-01-13"


def test_a_deleted_partition(source: Folders) -> None:
    source.write("2024-01-13")
    source.write("2024-01-14")
    source.remove("2024-01-14")
    assert newest(source) == "2024-01-13"


def test_a_partition_that_is_written_again(source: Folders) -> None:
    source.write("2024-01-14", [{"id": 1, "v": 1.5}])
    before = discover(source.root).newest
    source.write("2024-01-14", [{"id": 1, "v": 2.5}])
    after = discover(source.root).newest
    assert before is not None and after is not None
    assert before.files[0].size == after.files[0].size
    assert before.fingerprint != after.fingerprint
    assert look_at(source.root, date(2024, 1, 14)) == after


def test_thousands_of_partitions(folders: Folders) -> None:
    root = Path(folders.root.url)
    for year in range(2015, 2024):
        for month in range(1, 13):
            for day in range(1, 29):
                folder = root / f"{year}-{month:02}-{day:02}"
                folder.mkdir()
                (folder / "part-0.parquet").touch()
                if year < 2023:
                    (folder / "_SUCCESS").touch()
    found = discover(folders.root)
    assert len(os.listdir(root)) == 3024
    assert found.newest is not None and found.newest.name == "2022-12-28"


def test_thousands_of_partitions_on_s3(s3_folders: Folders) -> None:
    for number in range(1100):
        s3_folders.put(f"{2015 + number // 336}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}/part-0.parquet", b"x")
    s3_folders.put("2016-05-05/_SUCCESS")
    assert newest(s3_folders) == "2016-05-05"


def test_several_at_once(folders: Folders) -> None:
    for day in range(1, 10):
        folders.write(f"2024-01-0{day}", done=day != 8)
    found = discover(folders.root, most=3)
    assert [one.name for one in found.complete] == ["2024-01-09", "2024-01-07", "2024-01-06"]


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        discover(open_storage(tmp_path / "nowhere"))
    assert caught.value.code == "E1108"
