"""The picture of the guide shows the files and splits of a real index."""

from __future__ import annotations

import os
from pathlib import Path

from tests.search.splits_picture import FileLine, draw

import headwater as hw

FILE = Path(__file__).parents[2] / "docs" / "images" / "splits.svg"
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"


def test_the_picture_is_that_of_an_index(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    notes = lake.write("notes", [{"id": i, "body": f"note {i}"} for i in range(8)])
    index = lake.index("ix", "notes", text="body", refresh=True)
    notes.append([{"id": 10 + i, "body": "later"} for i in range(3)])
    index.refresh()
    notes.delete("id < 2")
    notes.append([{"id": 20, "body": "not covered"}])
    shots = [notes.at(version=v).snapshot for v in range(notes.version + 1)]
    covers = [index.store.cover(name) for name in index.record.names]
    lines = []
    for path in dict.fromkeys(path for shot in shots for path in shot.files):
        having = [v for v, shot in enumerate(shots) if path in shot.files]
        deleted = tuple(shots[v].files[path].num_deleted for v in having)
        split = next((n for n, cover in enumerate(covers) if path in cover.files), None)
        lines.append(FileLine(tuple(having), shots[having[0]].files[path].num_records or 0, deleted, split))
    drawn = draw("splits, files and versions", [str(hw.Frontier(notes=v)) for v in range(len(shots))], lines)
    if UPDATE:
        FILE.write_text(drawn)
    assert FILE.read_text() == drawn
