"""The examples in every rendering, as files; HEADWATER_UPDATE_GOLDEN=1 writes them anew.

The pictures are to be looked at: open ``golden/*.svg`` in a browser after a change, in light and in dark mode.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headwater.observe.graph import Graph

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"


@pytest.mark.parametrize("form", ["svg", "dot", "txt", "json"])
def test_rendering(example: tuple[str, Graph], form: str) -> None:
    name, graph = example
    if form == "json":
        text = json.dumps(graph.to_dict(), indent=2, ensure_ascii=False) + "\n"
    else:
        text = {"svg": graph.svg, "dot": graph.dot, "txt": lambda: graph.text() + "\n"}[form]()
    path = GOLDEN / f"{name}.{form}"
    if UPDATE:
        path.write_text(text)
    assert text == path.read_text()
