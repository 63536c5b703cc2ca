"""The Makefile chooses tests by marks that exist: pytest refuses an expression with another, and then runs nothing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_makefile_names_marks_that_exist() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    known = {line.partition(":")[0] for line in options["markers"]}
    chosen = re.findall(r'-m pytest .* -m (?:"([^"]+)"|(\w+))', (ROOT / "Makefile").read_text())
    expressions = [quoted or word for quoted, word in chosen]
    assert len(expressions) >= 4, expressions
    named = {word for text in expressions for word in re.findall(r"\w+", text)} - {"and", "not", "or"}
    assert named <= known, named - known
