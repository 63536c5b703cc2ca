"""Every ```python block of the README and the docs runs, in order, page by page, in an empty folder.

A page is one program: its blocks share their names. Text that is not meant to run is marked ```text.
Pages run in processes of their own, so that one page's Spark session or settings cannot help another.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, tmp_path: Path) -> None:
    program = program_of(page)
    if not program.strip():
        return
    script = tmp_path / page.name
    script.write_text(program)
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_blocks_are_marked() -> None:
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text()):
            assert block[1] in {"python", "text", "sql", "sh", "json", "toml", "yaml"}, f"{page.name}: {block[0]}"


def test_the_readme_is_short() -> None:
    blocks = [block[2] for block in BLOCK.finditer((ROOT / "README.md").read_text()) if block[1] == "python"]
    assert len(blocks[0].strip().splitlines()) <= 12
