"""The lives of project refreshes that are killed (`tests.incremental.killing`).

Commands come as JSON lines on stdin: ``{"folder": …, "after_ms": …}``. The child refreshes the project once.
"""

from __future__ import annotations

import importlib
from typing import Any

from tests.incremental.killing import serve

import headwater as hw

# Children need not load them again.
_MODULES = (
    "headwater.incremental.views.kind",
    "headwater.pipeline.project",
    "headwater.query.run",
    "headwater.search.kind",
    "headwater.serving.online.kind",
)


def live(command: dict[str, Any]) -> None:
    hw.Project.load(command["folder"]).refresh(workers=2)


def load() -> None:
    for name in _MODULES:
        importlib.import_module(name)


if __name__ == "__main__":
    serve(live, load)
