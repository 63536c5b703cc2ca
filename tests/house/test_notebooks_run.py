"""Every notebook of the docs runs, cell by cell, and what its cells end with can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs").rglob("*.ipynb"))


def shown(source: str, names: dict[str, Any]) -> str:
    """What a notebook shows below a cell: the value of its last expression, as HTML where it has that."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return str(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells and all(not cell["outputs"] for cell in cells)  # outputs are not kept
    names: dict[str, Any] = {}
    for cell in cells:
        text = shown("".join(cell["source"]), names)
        assert text.startswith("<") or len(text) < 10_000


def test_there_is_one() -> None:
    assert NOTEBOOKS
