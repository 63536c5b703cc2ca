"""View files: a query with settings in the comment at its top.

The settings are YAML in line comments, up to the first line that is none of them::

    -- description: What each customer has spent
    -- freshness: 1 hour
    -- online:
    --   spend_by_customer: {key: customer_id}

    SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id

The marks are replaced by spaces before the text is read, so that a mistake is shown at its line and column of the file.
A file whose first comment does not begin with ``key:`` has no settings; a setting that stands further down is refused,
since it would count for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from headwater.base.config.document import read_document
from headwater.base.config.fields import Model
from headwater.base.config.mistakes import mistakes_of
from headwater.base.config.overrides import resolve_scalars
from headwater.base.errors import ConfigError, HeadwaterError, NotFoundError, ProjectError, StorageError
from headwater.pipeline.config import ViewHeader

__all__ = ["Mistakes", "ViewFile", "read_text", "read_view", "validated"]

_SETTING = re.compile(r"\s*--\s*([A-Za-z_][A-Za-z0-9_]*)\s*:(\s|$)")
_M = TypeVar("_M", bound=Model)


class Mistakes(Exception):
    """Several things that are wrong with a file, in its order."""

    def __init__(self, errors: list[HeadwaterError]) -> None:
        super().__init__(str(len(errors)))
        self.errors = errors


@dataclass(frozen=True)
class ViewFile:
    """A query with its settings, and the lines of what it declares."""

    header: ViewHeader
    sql: str
    first_line: int
    lines: Mapping[tuple[str, ...], int]


def read_text(path: Path, shown: str) -> str:
    """A file of a project, as text."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError.object(path.name, str(path.parent)) from None
    except UnicodeDecodeError as error:
        raise ConfigError.syntax(f"byte {error.start} is not UTF-8", shown) from None
    except OSError as error:
        raise StorageError.failed(shown, error.strerror or str(error)) from error


def read_view(path: Path, shown: str, environ: Mapping[str, str]) -> ViewFile:
    """The query and settings of a file; ``shown`` is what the file is called in errors."""
    lines = read_text(path, shown).splitlines()
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    end = start
    if start < len(lines) and _SETTING.match(lines[start]):
        while end < len(lines) and lines[end].lstrip().startswith("--") and lines[end].strip().strip("-").strip():
            end += 1
    _check_late(lines, end, shown)
    blanked = [re.sub(r"^(\s*)--", r"\1  ", line) for line in lines[start:end]]
    text = "\n" * start + "\n".join(blanked)
    header, at = validated(ViewHeader, text, shown, environ, begins="`description:` or another setting")
    while end < len(lines) and not lines[end].strip():
        end += 1
    sql = "\n".join(lines[end:]).strip().rstrip(";").rstrip()
    if not _without_comments(sql):
        raise ProjectError.no_query(f"{shown}:{len(lines) or 1}")
    return ViewFile(header, sql, end + 1, at)


def validated(
    model: type[_M], text: str, shown: str, environ: Mapping[str, str], *, begins: str, folder: str | None = None
) -> tuple[_M, dict[tuple[str, ...], int]]:
    """What a text says by a model, and the line of each key; raises `Mistakes`."""
    document = read_document(text, shown, environ, begins=begins)
    try:
        found = model.model_validate(resolve_scalars(document.value, model), context={"folder": folder})
    except ValidationError as error:
        raise Mistakes(list(mistakes_of(error, document, document.value, model))) from None
    lines = {tuple(map(str, path)): line for path, (line, _) in document.keys_at.items()}
    return found, lines


def _check_late(lines: list[str], end: int, shown: str) -> None:
    """Raise for a setting in a comment before the query that is not at the top."""
    known = set(ViewHeader.model_fields)
    for number, line in enumerate(lines[end:], start=end + 1):
        if line.strip() and not line.lstrip().startswith("--"):
            return
        found = _SETTING.match(line)
        if found and found[1] in known:
            raise ProjectError.late_setting(found[1], f"{shown}:{number}")


def _without_comments(sql: str) -> str:
    return re.sub(r"--[^\n]*|/\*.*?\*/", "", sql, flags=re.DOTALL).strip()
