"""Searches over copies that are garbled, each in a process of its own (`tests.incremental.killing`).

A command is ``{"lake": …, "options": …, "folder": …, "said": …}``: the child asks the index ``ix`` of the lake, with its copies in
the folder, and writes to ``said`` what came of it. It lets go of all readers before it ends, so that whatever they hold is taken apart too. It has an address space with a
limit: the library ends the process if a length that is garbled makes it ask for more, which the test would notice.
"""

from __future__ import annotations

import gc
import resource
from pathlib import Path
from typing import Any

import tantivy  # noqa: F401  (children need not load it again)
from tests.incremental.killing import serve
from tests.memory import bounded_memory
from tests.search.test_damage import answers, forget

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.search import kind, searching  # noqa: F401

MOST_MB, MOST_ADDRESSES_MB = 256, 1_024


def live(command: dict[str, Any]) -> None:
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (addresses + MOST_ADDRESSES_MB * 2**20,) * 2)
    try:
        with bounded_memory(MOST_MB):
            _ask(command)
    except AssertionError as e:
        Path(command["said"]).write_text(str(e))


def _ask(command: dict[str, Any]) -> None:
    with hw.settings.override(spill_dir=command["folder"]):
        index = hw.connect(command["lake"], storage_options=command["options"]).index("ix")
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
