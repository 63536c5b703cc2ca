"""Searches over copies that are garbled, each in a process of its own (`tests.incremental.killing`).

A command is ``{"folder": …, "said": …}``: the child asks the index ``ix`` of the lake in the folder, and writes to ``said`` what
came of it. It lets go of all readers before it ends, so that whatever they hold is taken apart too.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import tantivy  # noqa: F401  (children need not load it again)
from tests.incremental.killing import serve
from tests.search.test_damage import answers, forget

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.search import kind, searching  # noqa: F401


def live(command: dict[str, Any]) -> None:
    with hw.settings.override(spill_dir=command["folder"]):
        index = hw.connect(command["folder"] + "/lake").index("ix")
        try:
            said = f"answer {answers(index)}"
        except HeadwaterError as error:
            said = f"error {error.code}"
        del index
        forget()
        gc.collect()
    Path(command["said"]).write_text(said)


if __name__ == "__main__":
    serve(live, lambda: None)
