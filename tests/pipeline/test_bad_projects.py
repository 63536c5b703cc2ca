"""Bad projects: what users read, and that nothing of them is applied.

``bad_projects.txt`` is the catalogue. Above ``--`` are the files of a project (``=== name``); below it is the answer of
`Project.check`. ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/pipeline`` writes the answers. Every project stands in a folder
whose lake has the tables ``t`` (id, k, x) and ``notes``, and a view ``taken`` that no project declares.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError

CATALOGUE = Path(__file__).with_name("bad_projects.txt")
_CASE = re.compile(r"^== (.*)\n", re.MULTILINE)


def cases() -> dict[str, tuple[str, str]]:
    """The files and the answer of each project, by its title."""
    parts = _CASE.split(CATALOGUE.read_text())[1:]
    found = {}
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        files, _, answer = body.partition("\n--\n")
        found[title] = files.strip("\n"), answer.strip("\n")
    return found


def files_of(text: str) -> dict[str, str]:
    parts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)[1:]
    return {"headwater.yaml": "name: shop\n", **dict(zip(parts[::2], parts[1::2], strict=True))}


@pytest.fixture(scope="module")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad") / "lake"
    lake = hw.connect(folder)
    lake.write("t", [{"id": 1, "k": "a", "x": 1.5}])
    lake.write("notes", [{"id": 1, "body": "a note"}])
    lake.view("taken", "SELECT id FROM t")
    hw.connect(folder.parent / "other").write("raw", [{"id": 1}])
    lake.attach("far", str(folder.parent / "other" / "raw"))
    return folder


def answer(folder: Path, text: str) -> str:
    for name, content in files_of(text).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    try:
        hw.Project.load(folder, environ={"HOME_OF_X": "x"}).check()
    except HeadwaterError as error:
        said = f"{type(error).__name__}\n{error}"
        return re.sub(r"/\S*?/(bad\d*|bad-\S*?)/", "…/", said.replace(str(folder), "PROJECT"))
    return "no error"


def updated() -> bool:
    return bool(os.environ.get("HEADWATER_UPDATE_GOLDEN"))


def test_there_are_many() -> None:
    assert len(cases()) >= 40


@pytest.mark.skipif(updated(), reason="the answers are being written")
@pytest.mark.parametrize("title", list(cases()))
def test_bad_project(title: str, tmp_path: Path, lake_folder: Path) -> None:
    files, expected = cases()[title]
    shutil.copytree(lake_folder, tmp_path / "lake")
    before = sorted(p.relative_to(tmp_path).as_posix() for p in (tmp_path / "lake").rglob("*"))
    assert answer(tmp_path, files) == expected
    assert sorted(p.relative_to(tmp_path).as_posix() for p in (tmp_path / "lake").rglob("*")) == before


@pytest.mark.skipif(not updated(), reason="only with HEADWATER_UPDATE_GOLDEN")
def test_write_the_answers(tmp_path: Path, lake_folder: Path) -> None:
    head = CATALOGUE.read_text().partition("\n== ")[0]
    written = [head]
    for number, (title, (files, _)) in enumerate(cases().items()):
        folder = tmp_path / str(number)
        shutil.copytree(lake_folder, folder / "lake")
        written.append(f"\n== {title}\n{files}\n--\n{answer(folder, files)}\n")
    CATALOGUE.write_text("".join(written))
