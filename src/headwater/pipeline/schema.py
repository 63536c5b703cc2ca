"""The JSON Schema of ``headwater.yaml``, shipped beside this file as ``schema.json``.

``HEADWATER_UPDATE_GOLDEN=1 pytest tests/pipeline`` writes it again after a change of the models.

Editors find it by the first line of the file (`SCHEMA_LINE`), which names a copy in the project's folder for what is
kept between runs. That is not under version control: checking the project writes the one of the version that checks it.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import resources
from pathlib import Path

from headwater.base.config import schema
from headwater.pipeline.config import ProjectConfig

__all__ = ["SCHEMA_LINE", "keep_schema", "schema_text"]

_PLACE = ".headwater/schema.json"
SCHEMA_LINE = f"# yaml-language-server: $schema={_PLACE}\n"
"""How editors with the YAML language server find the schema."""


def schema_text() -> str:
    """The schema, as its file holds it."""
    return schema.schema_text(ProjectConfig, "Headwater: headwater.yaml")


def keep_schema(root: Path) -> None:
    """Have the copy of the schema in a project's folder be that of this version; a folder may be read-only."""
    text = (resources.files("headwater.pipeline") / "schema.json").read_text(encoding="utf-8")
    file = root / _PLACE
    with suppress(OSError):
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            return
        file.parent.mkdir(exist_ok=True)
        ignore = file.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        file.write_text(text, encoding="utf-8")
