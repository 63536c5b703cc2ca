"""Every ```python block of the README and the docs runs, in order, page by page, in an empty folder.

A page is one program: its blocks share their names. Text that is not meant to run is marked ```text.
The README and pages without Spark run in processes of their own, as a reader would run them. The others share the
session of the tests, since a JVM for each would take minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def program_of(page: Path) -> str:
    """The page's blocks as one program whose line numbers are those of the page."""
    text = page.read_text()
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        if block[1] == "python":
            first = text.count("\n", 0, block.start(2))
            body = block[2].splitlines()
            lines[first : first + len(body)] = body
    return "\n".join(lines) + "\n"


def uses_spark(page: Path) -> bool:
    return re.search(r"spark|\.stream\(", program_of(page)) is not None


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


ALONE = [page for page in PAGES if program_of(page).strip() and not uses_spark(page)]
ON_SPARK = [page for page in PAGES[1:] if uses_spark(page)]


def run_alone(page: Path, folder: Path) -> None:
    script = folder / page.name
    script.write_text(program_of(page))
    done = subprocess.run([sys.executable, script.name], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("page", ALONE, ids=name_of)
def test_page_runs(page: Path, tmp_path: Path) -> None:
    run_alone(page, tmp_path)


@pytest.mark.spark
def test_the_readme_runs_with_a_session_of_its_own(tmp_path: Path) -> None:
    assert uses_spark(PAGES[0])
    run_alone(PAGES[0], tmp_path)


@pytest.mark.parametrize("page", ON_SPARK, ids=name_of)
def test_page_runs_on_spark(
    page: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # others go on with it
    # A checkpoint's path is relative to where the JVM was started.
    program = program_of(page).replace('"checkpointLocation", "', f'"checkpointLocation", "{tmp_path}/')
    exec(compile(program, page, "exec"), {"__name__": "__main__"})


def test_blocks_are_marked() -> None:
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text()):
            assert block[1] in {"python", "text", "sql", "sh", "json", "toml", "yaml"}, f"{page.name}: {block[0]}"


def test_the_readme_is_short() -> None:
    blocks = [block[2] for block in BLOCK.finditer((ROOT / "README.md").read_text()) if block[1] == "python"]
    assert len(blocks[0].strip().splitlines()) <= 12
