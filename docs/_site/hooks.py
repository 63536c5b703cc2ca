"""What the site adds to the pages in docs/: the pages beside the README, and a list of the decisions.

The pages link to each other as files of the repository, so that they can be read there, too. Here a link to a page
that the site has under another name is given that name; everything else is checked by mkdocs itself (`strict`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
BESIDE_THE_README = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
}
FROM_THE_ROOT = {*BESIDE_THE_README.values(), "measured.md"}
LINK = re.compile(r"\]\((?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand beside the README, and the list of decisions."""
    for name, page in BESIDE_THE_README.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    files.append(File.generated(config, "measured.md", content=measured()))
    files.append(File.generated(config, "adr/index.md", content=decisions()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where the site has a page."""
    here = page.file.src_uri
    folder = ROOT if here in FROM_THE_ROOT else (ROOT / "docs" / here).parent

    def lead(link: re.Match[str]) -> str:
        path = link["path"]
        if re.match(r"[a-z]+:", path):
            return link[0]
        target = (folder / path).resolve()
        if not target.is_relative_to(ROOT):
            return link[0]
        inside = str(target.relative_to(ROOT))
        if inside == "docs/adr":
            inside = "docs/adr/index.md"
        if inside == "README.md":
            inside = "docs/measured.md" if link["anchor"] == "#measured" else "docs/index.md"
        inside = BESIDE_THE_README.get(inside, inside.removeprefix("docs/"))
        up = "../" * here.count("/")
        return f"]({up}{inside}{link['anchor'] or ''})"

    return LINK.sub(lead, markdown)


def measured() -> str:
    """The README's tables of what was measured, as a page."""
    section = (ROOT / "README.md").read_text().partition("\n## Measured\n")[2].partition("\n## ")[0]
    return f"# Measured\n{section}"


def decisions() -> str:
    """The decision records by number, with their titles."""
    rows = ["# Decisions", "", "What was decided, when, and what was measured for it.", ""]
    for record in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        title = record.read_text().partition("\n")[0].removeprefix("# ")
        number, _, rest = title.partition(". ")
        rows.append(f"{int(number)}. [{rest}]({record.name})")
    return "\n".join(rows) + "\n"
