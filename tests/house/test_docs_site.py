"""The site (`make docs`) has every guide and every public name; mkdocs itself checks its links."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import headwater as hw

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text()


def in_the_menu() -> set[str]:
    return set(re.findall(r": ([\w/-]+\.md)$", CONFIG, re.MULTILINE))


def reference() -> str:
    return "\n".join(page.read_text() for page in sorted((DOCS / "reference").glob("*.md")))


def test_every_page_is_in_the_menu() -> None:
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent.name != "adr"}
    assert pages <= in_the_menu()


def test_the_menu_has_no_pages_that_are_not_there() -> None:
    made = {"architecture.md", "changes.md", "contributing.md", "measured.md", "adr/index.md"}
    assert {page for page in in_the_menu() - made if not (DOCS / page).exists()} == set()


@pytest.mark.parametrize("name", [name for name in hw.__all__ if name != "__version__"])
def test_every_public_name_is_in_the_reference(name: str) -> None:
    documented = re.findall(r"^::: ([\w.]+)", reference(), re.MULTILINE)
    value = getattr(hw, name)
    if isinstance(value, ModuleType):
        assert any(f"{one}.".startswith(f"{value.__name__}.") for one in documented)
        return
    home = getattr(value, "__module__", type(value).__module__)
    assert any(f"{home}.{name}" == one or f"{home}.".startswith(f"{one}.") for one in documented)
