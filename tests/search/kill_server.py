"""The lives of indexes that are killed (`tests.incremental.killing`).

A command is ``{"lake": …, "options": …, "what": "refresh" | "full" | "merge" | "vacuum", "after_ms": …}`` or has a fault point. The child
does that to the index ``it`` of the lake again and again, until it is killed.
"""

from __future__ import annotations

from typing import Any

import tantivy  # noqa: F401  (children need not load it again)
from tests.incremental.killing import serve

import headwater as hw
from headwater.search import kind, maintenance, searching  # noqa: F401


def live(command: dict[str, Any]) -> None:
    lake = hw.connect(command["lake"], storage_options=command["options"])
    index = lake.index("it")
    while True:
        if command["what"] == "merge":
            index.merge()
        elif command["what"] == "vacuum":
            index.vacuum(retention_hours=0)
        index.refresh(full=command["what"] == "full")
        lake.table("notes").set_properties({"turn": "next"})


if __name__ == "__main__":
    serve(live, lambda: None)
